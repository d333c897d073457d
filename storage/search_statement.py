"""The one statement of a search: permitted set, both legs, fusion, floors and the content of hits.

Who may see a row is decided twice and both must agree: by ``sources.auth_subject``, the authority, and by the
subject number copied onto the row. Every quantity, BM25's statistics included, is taken from the permitted set.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.retrieval.fusion import BM25_B, BM25_K1, LEG_DEPTH, RRF_K, SCORE_DIGITS


@dataclass(frozen=True, slots=True)
class Shape:
    """What a statement is composed of: its legs, its set and its filters. Values are bound, never composed.

    ``source_filters`` and ``chunk_filters`` are conditions of :mod:`storage.search_filters`.
    """

    embedding_set: int | None
    dimensions: int
    keywords: bool
    source_filters: tuple[str, ...]
    chunk_filters: tuple[str, ...]


# An empty list of conditions permits everything.
def _all(conditions: tuple[str, ...]) -> str:
    return " AND ".join(conditions) or "true"


def compose(shape: Shape) -> str:
    """The statement; it binds tenant, subjects, terms, vector, limit, both floors and what the filters bind."""
    parts = [
        _PERMITTED.format(wanted=_all(shape.source_filters)),
        *([_CHOSEN.format(conditions=_all(shape.chunk_filters))] if shape.chunk_filters else []),
        _CORPUS.format(remaining=_REMAINING_CHUNKS if shape.chunk_filters else _REMAINING_SOURCES, k1=_K1, b=_B),
        *(_vector_leg(shape) if shape.embedding_set is not None else [_NO_VECTOR_LEG]),
        *(_keyword_leg(shape) if shape.keywords else [_NO_KEYWORD_LEG]),
        _FUSED,
    ]
    return "WITH " + ",\n".join(part.strip() for part in parts) + _HITS


_PERMITTED = """
held AS MATERIALIZED (
    SELECT subject_no FROM subjects WHERE tenant_id = :tenant AND subject = ANY(:subjects)
),
permitted AS MATERIALIZED (
    SELECT s.source_no, s.source_id, s.published_generation AS generation, s.chunk_count, s.term_total,
           s.language, s.attributes, {wanted} AS wanted
      FROM sources s
     WHERE s.tenant_id = :tenant AND s.auth_subject = ANY(:subjects) AND s.published_generation IS NOT NULL
       AND s.status <> 'removed' AND s.indexed
)
"""

# Filters on chunks are answered once, for both legs and for the count of what they left.
_CHOSEN = """
chosen AS MATERIALIZED (
    SELECT p.source_no, c.ordinal
      FROM permitted p
      CROSS JOIN LATERAL (
           SELECT c.ordinal, c.subject_no, c.pages, c.attributes FROM chunks c
            WHERE c.tenant_id = :tenant AND c.source_id = p.source_id AND c.generation = p.generation OFFSET 0) c
     WHERE p.wanted AND c.subject_no = ANY(ARRAY(SELECT subject_no FROM held)) AND {conditions}
)
"""
_K1, _B = f"{BM25_K1}::float8", f"{BM25_B}::float8"
_REMAINING_SOURCES = "coalesce(sum(chunk_count) FILTER (WHERE wanted), 0)"
_REMAINING_CHUNKS = "(SELECT count(*) FROM chosen)"

_CORPUS = """
corpus AS MATERIALIZED (
    SELECT coalesce(sum(chunk_count), 0) AS total, {remaining} AS remaining,
           {k1} * {b} / greatest(coalesce(sum(term_total)::float8 / nullif(sum(chunk_count), 0), 1), 1) AS slope
      FROM permitted
)
"""

_VECTORS = """
    SELECT e.source_no, e.ordinal, (e.embedding <=> CAST(:vector AS halfvec({dimensions}))) + 0 AS distance
      FROM chunk_embeddings e
      JOIN permitted p ON p.source_no = e.source_no AND p.generation = e.generation
      {chosen}
     WHERE e.tenant_id = :tenant AND e.set_id = {set}
       AND e.source_no = ANY(ARRAY(SELECT source_no FROM permitted WHERE wanted))
       AND e.subject_no = ANY(ARRAY(SELECT subject_no FROM held))
"""

# Adding zero keeps a later HNSW index out of this exact scan. One row more than the leg is deep tells whether a tie
# crosses its end; only then are the vectors read again, for all that share the last place.
_VECTOR_LEG = """
nearest AS MATERIALIZED (
    {vectors}
    ORDER BY distance LIMIT {depth} + 1
),
last_place AS MATERIALIZED (
    SELECT max(distance) AS distance, coalesce(bool_or(place > {depth} AND distance = bar), false) AS shared
      FROM (SELECT distance, place, max(distance) FILTER (WHERE place <= {depth}) OVER () AS bar
              FROM (SELECT distance, row_number() OVER (ORDER BY distance) AS place FROM nearest) numbered) barred
),
vector_leg AS (
    SELECT c.source_id, c.generation, c.ordinal, c.chunk_id, 1 - n.distance / 2 AS similarity,
           row_number() OVER (ORDER BY n.distance, c.chunk_id) AS rank
      FROM (SELECT * FROM nearest WHERE NOT (SELECT shared FROM last_place)
                OR distance < (SELECT distance FROM last_place)
            UNION ALL
            SELECT * FROM ({vectors}) every
             WHERE (SELECT shared FROM last_place) AND distance = (SELECT distance FROM last_place)) n
      JOIN permitted p ON p.source_no = n.source_no
      CROSS JOIN LATERAL (
           SELECT c.source_id, c.generation, c.ordinal, c.chunk_id, c.subject_no FROM chunks c
            WHERE c.tenant_id = :tenant AND c.source_id = p.source_id AND c.generation = p.generation
              AND c.ordinal = n.ordinal OFFSET 0) c
     WHERE c.subject_no = ANY(ARRAY(SELECT subject_no FROM held)) AND 1 - n.distance / 2 >= :absolute_floor
     ORDER BY rank LIMIT {depth}
)
"""
_NO_VECTOR_LEG = """
nearest AS (SELECT WHERE false),
vector_leg AS (
    SELECT NULL::uuid AS source_id, 0 AS generation, 0 AS ordinal, NULL::uuid AS chunk_id, NULL::float8 AS similarity,
           NULL::bigint AS rank WHERE false
)
"""


def _vector_leg(shape: Shape) -> list[str]:
    vectors = _VECTORS.format(
        dimensions=int(shape.dimensions), set=int(shape.embedding_set or 0), chosen=_chosen("e", shape)
    )
    return [_VECTOR_LEG.format(vectors=vectors, depth=LEG_DEPTH)]


def _chosen(alias: str, shape: Shape) -> str:
    if not shape.chunk_filters:
        return ""
    return f"JOIN chosen ON chosen.source_no = {alias}.source_no AND chosen.ordinal = {alias}.ordinal"


# BM25 over the permitted rows (formulas and constants: pipeline/retrieval/fusion.py); what does not change from row to
# row is in ``weight`` and ``slope``. Frequencies are counted before the filters, so that a filter narrows an answer
# without reordering it.
_KEYWORD_LEG = """
postings AS MATERIALIZED (
    SELECT t.term, t.source_no, t.ordinal, t.tf, t.length, p.wanted
      FROM chunk_terms t
      JOIN permitted p ON p.source_no = t.source_no AND p.generation = t.generation
     WHERE t.tenant_id = :tenant AND t.term = ANY(:terms) AND t.subject_no = ANY(ARRAY(SELECT subject_no FROM held))
),
weights AS MATERIALIZED (
    SELECT term, ({k1} + 1) * ln((greatest(corpus.total, frequency) + 1) / (frequency + 0.5))::float8 AS weight
      FROM (SELECT term, count(*) AS frequency FROM postings GROUP BY term) counted, corpus
),
scored AS MATERIALIZED (
    SELECT t.source_no, t.ordinal,
           round(sum(w.weight * t.tf / (t.tf + {k1} * (1 - {b}) + (SELECT slope FROM corpus) * t.length))
                 * 1e{digits}) / 1e{digits} AS score
      FROM postings t JOIN weights w ON w.term = t.term
      {chosen}
     WHERE t.wanted
     GROUP BY t.source_no, t.ordinal
),
keyword_leg AS (
    SELECT c.source_id, c.generation, c.ordinal, c.chunk_id, k.score,
           row_number() OVER (ORDER BY k.score DESC, c.chunk_id) AS rank
      FROM scored k
      JOIN permitted p ON p.source_no = k.source_no
      CROSS JOIN LATERAL (
           SELECT c.source_id, c.generation, c.ordinal, c.chunk_id, c.subject_no FROM chunks c
            WHERE c.tenant_id = :tenant AND c.source_id = p.source_id AND c.generation = p.generation
              AND c.ordinal = k.ordinal OFFSET 0) c
     WHERE c.subject_no = ANY(ARRAY(SELECT subject_no FROM held))
       AND k.score >= coalesce((SELECT score FROM scored ORDER BY score DESC OFFSET {depth} - 1 LIMIT 1), 0)
     ORDER BY rank LIMIT {depth}
)
"""
_NO_KEYWORD_LEG = """
keyword_leg AS (
    SELECT NULL::uuid AS source_id, 0 AS generation, 0 AS ordinal, NULL::uuid AS chunk_id, NULL::float8 AS score,
           NULL::bigint AS rank WHERE false
)
"""


def _keyword_leg(shape: Shape) -> list[str]:
    return [
        _KEYWORD_LEG.format(
            k1=_K1,
            b=_B,
            digits=SCORE_DIGITS,
            depth=LEG_DEPTH,
            chosen=_chosen("t", shape),
        )
    ]


_FUSED = f"""
fused AS MATERIALIZED (
    SELECT source_id, generation, ordinal, chunk_id, v.rank AS vector_rank, v.similarity, k.rank AS keyword_rank,
           k.score AS keyword_score,
           coalesce(1::float8 / ({RRF_K} + v.rank), 0) + coalesce(1::float8 / ({RRF_K} + k.rank), 0) AS sum
      FROM vector_leg v FULL JOIN keyword_leg k USING (source_id, generation, ordinal, chunk_id)
),
best AS (
    SELECT *, sum / max(sum) OVER () AS relative FROM fused
),
hits AS MATERIALIZED (
    SELECT * FROM best WHERE relative >= :relative_floor ORDER BY sum DESC, chunk_id LIMIT :limit
)
"""

# One row even without a hit: the counts tell why there is none.
_HITS = """
SELECT corpus.total, corpus.remaining, (SELECT count(*) FROM nearest) AS compared, h.chunk_id, h.source_id,
       h.vector_rank, h.similarity, h.keyword_rank, h.keyword_score, h.relative, x.*,
       (SELECT sf.file_id FROM source_files sf JOIN files f ON f.tenant_id = sf.tenant_id AND f.file_id = sf.file_id
         WHERE sf.tenant_id = :tenant AND sf.source_id = h.source_id AND f.state = 'stored'
           AND f.auth_subject = ANY(:subjects)
         ORDER BY sf.created_at, sf.file_id LIMIT 1) AS file_id
  FROM corpus
  LEFT JOIN hits h ON true
  LEFT JOIN LATERAL (
       SELECT s.published_version, s.title, c.kind, c.content, c.content_hash, c.heading_path, c.location, c.method,
              c.confidence
         FROM sources s JOIN chunks c ON c.tenant_id = :tenant AND c.source_id = s.source_id
        WHERE s.tenant_id = :tenant AND s.source_id = h.source_id AND c.generation = h.generation
          AND c.ordinal = h.ordinal OFFSET 0) x ON true
 ORDER BY h.sum DESC, h.chunk_id
"""
