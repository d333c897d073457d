"""What every retriever holds: who sees what, in which order, and what it says when there is nothing."""

from __future__ import annotations

import dataclasses
import math
import random
import uuid

import pytest

from pipeline.errors import StaleEmbeddingSet
from pipeline.retrieval import fusion
from pipeline.types import GenerationRef, Nothing, NothingReason, RetrievalOutcome, SearchFilters, SearchMode
from tests.contract.libraries import EMBEDDER, Library, MemoryLibrary, Passage, PostgresLibrary, add, document, write
from tests.contract.questions import (
    BOTH,
    EVERYTHING,
    HYBRID,
    KEYWORD,
    RED,
    VECTOR,
    ask,
    contents,
    found,
    question,
    reason,
)

# --- who sees what ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SearchMode)
def test_a_tenant_sees_its_own_and_nothing_else(library: Library, tenant: uuid.UUID, mode: SearchMode) -> None:
    other = library.tenant()
    mine = add(library, tenant, document("the harbour was closed in winter"))
    add(library, other, document("the harbour was closed in winter"))
    hits = found(ask(library, tenant, "harbour closed in winter", mode=mode))
    assert [hit.source_id for hit in hits] == [mine.source_id]
    assert reason(ask(library, library.tenant(), "harbour closed", mode=mode)) is NothingReason.EMPTY_CORPUS


@pytest.mark.parametrize("mode", SearchMode)
def test_what_others_hold_changes_nothing(library: Library, tenant: uuid.UUID, mode: SearchMode) -> None:
    """Neither hits nor scores, ranks or counts: statistics are of the permitted set."""
    add(library, tenant, document("harbour dues are paid in advance", "the pilot boards at dawn"))
    before = ask(library, tenant, "harbour pilot dues", mode=mode)
    for number in range(8):
        add(library, tenant, document(f"harbour harbour pilot dues {number}", subject="team:blue"))
    assert ask(library, tenant, "harbour pilot dues", mode=mode) == before
    assert len(found(ask(library, tenant, "harbour pilot dues", BOTH, mode=mode, relative_floor=EVERYTHING))) > len(
        found(before)
    )


@pytest.mark.parametrize("mode", SearchMode)
def test_no_subject_finds_nothing(library: Library, tenant: uuid.UUID, mode: SearchMode) -> None:
    add(library, tenant, document("harbour"))
    assert reason(ask(library, tenant, "harbour", (), mode=mode)) is NothingReason.NO_ACCESS


def test_a_subject_without_documents_is_an_empty_corpus(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("harbour"))
    assert reason(ask(library, tenant, "harbour", ("team:blue",))) is NothingReason.EMPTY_CORPUS
    assert reason(ask(library, tenant, "harbour", ("team:red\x00", "team:\ud800"))) in NothingReason


@pytest.mark.parametrize("mode", SearchMode)
def test_a_moved_source_is_hidden_at_once_and_shown_when_its_rows_followed(
    library: Library, tenant: uuid.UUID, mode: SearchMode
) -> None:
    ref = add(library, tenant, document("harbour dues are paid in advance"))
    library.move(ref, "team:blue")
    assert isinstance(ask(library, tenant, "harbour dues", RED, mode=mode), Nothing)
    assert isinstance(ask(library, tenant, "harbour dues", ("team:blue",), mode=mode), Nothing)
    assert len(found(ask(library, tenant, "harbour dues", BOTH, mode=mode))) == 1
    library.move_copies(ref, {"chunks"})
    assert isinstance(ask(library, tenant, "harbour dues", ("team:blue",), mode=mode), Nothing)
    library.move(ref, "team:green")
    library.move_copies(ref, {"terms", "vectors"})
    assert isinstance(ask(library, tenant, "harbour dues", ("team:green",), mode=mode), Nothing)
    library.move(ref, "team:blue")
    library.move_copies(ref, {"chunks", "terms", "vectors"})
    assert isinstance(ask(library, tenant, "harbour dues", RED, mode=mode), Nothing)
    assert len(found(ask(library, tenant, "harbour dues", ("team:blue",), mode=mode))) == 1


@pytest.mark.parametrize("mode", SearchMode)
def test_only_the_published_generation_answers(library: Library, tenant: uuid.UUID, mode: SearchMode) -> None:
    ref = add(library, tenant, document("harbour dues of the first edition"))
    second = dataclasses.replace(ref, generation=2)
    revised = (Passage("harbour dues of the second edition"),)
    write(library, second, revised, publish=False)
    (hit,) = found(ask(library, tenant, "harbour dues edition", mode=mode))
    assert (hit.content, hit.source_version) == ("harbour dues of the first edition", 1)
    if mode is KEYWORD:
        assert reason(ask(library, tenant, "second", mode=mode)) is NothingReason.NO_MATCH
    write(library, second, revised)
    (revision,) = found(ask(library, tenant, "harbour dues edition", mode=mode))
    assert (revision.content, revision.source_version) == ("harbour dues of the second edition", 2)
    assert revision.chunk_id == hit.chunk_id
    assert revision.content_hash != hit.content_hash


@pytest.mark.parametrize("mode", SearchMode)
def test_removed_unpublished_and_unindexed_sources_are_not_searched(
    library: Library, tenant: uuid.UUID, mode: SearchMode
) -> None:
    removed = add(library, tenant, document("harbour"))
    library.remove(removed)
    add(library, tenant, document("harbour", indexed=False))
    unpublished = GenerationRef(tenant, uuid.uuid4(), 1)
    library.source(tenant, document("harbour"), unpublished.source_id)
    write(library, unpublished, [Passage("harbour")], publish=False)
    assert reason(ask(library, tenant, "harbour", mode=mode)) is NothingReason.EMPTY_CORPUS


def test_no_vector_is_returned(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("harbour dues"))
    (hit,) = found(ask(library, tenant, "harbour dues"))
    assert {field.name for field in dataclasses.fields(hit)}.isdisjoint({"embedding", "values", "content_key"})
    assert hit.vector is not None
    assert {field.name for field in dataclasses.fields(hit.vector)} == {"rank", "similarity"}
    assert not any(isinstance(value, tuple) and len(value) > 1 for value in dataclasses.asdict(hit).values())


# --- order --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SearchMode)
def test_best_first_and_never_more_than_the_limit(library: Library, tenant: uuid.UUID, mode: SearchMode) -> None:
    add(library, tenant, document(*(f"harbour {'dues ' * count}paid" for count in range(12))))
    hits = found(ask(library, tenant, "harbour dues", mode=mode, limit=4, relative_floor=EVERYTHING))
    assert len(hits) == 4
    assert hits[0].score == 1.0
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    more = found(ask(library, tenant, "harbour dues", mode=mode, limit=4, candidates=9, relative_floor=EVERYTHING))
    assert len(more) == 9
    assert more[:4] == hits


@pytest.mark.parametrize("mode", SearchMode)
def test_ties_go_by_chunk_id_even_where_they_cross_the_end_of_a_leg(
    library: Library, tenant: uuid.UUID, mode: SearchMode
) -> None:
    add(library, tenant, document("harbour dues harbour dues"))
    same = document(*["harbour dues and quays"] * 31)
    sources = [add(library, tenant, same).source_id for _ in range(2)]
    names = sorted(uuid.uuid5(source, str(ordinal)) for source in sources for ordinal in range(31))
    hits = found(ask(library, tenant, "harbour dues", mode=mode, limit=50, relative_floor=EVERYTHING))
    assert hits[0].content == "harbour dues harbour dues"
    assert [hit.chunk_id for hit in hits[1:]] == names[:49]


def test_both_legs_fuse_by_reciprocal_rank(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("harbour dues", "harbour dues dues quay", "harbour and everything else", "unlike"))
    hits = found(ask(library, tenant, "harbour dues", relative_floor=EVERYTHING))
    sums = [fusion.fused(hit.vector.rank, hit.keyword.rank) for hit in hits if hit.vector and hit.keyword]
    assert len(sums) == len(hits) == 3
    assert [hit.score for hit in hits] == pytest.approx([one / max(sums) for one in sums])
    assert sorted(hit.vector.rank for hit in hits if hit.vector) == [1, 2, 3]
    assert sorted(hit.keyword.rank for hit in hits if hit.keyword) == [1, 2, 3]


def test_keyword_scores_are_bm25_of_the_permitted_set(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("quay quay dues", "dues of the port authority", "nothing of that kind here at all"))
    (first, second) = found(ask(library, tenant, "quay dues", mode=KEYWORD))
    average = (3 + 5 + 7) / 3
    quay, dues = math.log(4 / 1.5), math.log(4 / 2.5)
    assert first.keyword is not None
    assert second.keyword is not None
    assert first.keyword.score == pytest.approx(
        quay * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / average)) + dues * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / average))
    )
    assert second.keyword.score == pytest.approx(dues * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 5 / average)))


def test_similarity_is_on_the_scale_where_unrelated_is_one_half(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("harbour dues", "entirely different words"))
    near, far = found(ask(library, tenant, "harbour dues", mode=VECTOR, absolute_floor=0.0, relative_floor=EVERYTHING))
    assert near.vector is not None
    assert far.vector is not None
    assert near.vector.similarity == pytest.approx(1.0, abs=1e-3)
    assert far.vector.similarity == pytest.approx(0.5, abs=1e-3)


def test_an_identifier_is_found_exactly(library: Library, tenant: uuid.UUID) -> None:
    add(
        library,
        tenant,
        document("ERR-4022 means the tank is full", "ERR-4021 means the tank is empty", "ERR-40211 means no tank"),
    )
    hits = found(ask(library, tenant, "ERR-4021", mode=KEYWORD))
    assert hits[0].content == "ERR-4021 means the tank is empty"
    assert "ERR-4021" in found(ask(library, tenant, "what does err-4021 mean?"))[0].content
    assert isinstance(ask(library, tenant, "4021-ERR-X", mode=KEYWORD, terms=("4021-err-x",)), Nothing)


def test_a_script_without_spaces_is_found_by_pairs(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("本社は東京都港区にあります", "支社は大阪市北区にあります"))
    assert contents(ask(library, tenant, "東京都", mode=KEYWORD))[0] == "本社は東京都港区にあります"
    assert reason(ask(library, tenant, "京東", mode=KEYWORD)) is NothingReason.NO_MATCH


# --- floors -------------------------------------------------------------------------------


def test_the_absolute_floor_is_inside_the_vector_leg(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("harbour dues", "harbour and seven other quite unlike words follow here"))
    every = found(ask(library, tenant, "harbour dues", mode=VECTOR, absolute_floor=0.0, relative_floor=EVERYTHING))
    floor = (every[0].vector.similarity + every[1].vector.similarity) / 2 if every[0].vector and every[1].vector else 0
    kept = found(ask(library, tenant, "harbour dues", mode=VECTOR, absolute_floor=floor, relative_floor=EVERYTHING))
    assert [hit.content for hit in kept] == ["harbour dues"]


def test_the_relative_floor_is_a_share_of_the_best(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document(*(f"harbour dues {'filler ' * count}" for count in range(30))))
    every = found(ask(library, tenant, "harbour dues", limit=50, relative_floor=EVERYTHING, absolute_floor=0.0))
    cut = every[10].score
    kept = found(ask(library, tenant, "harbour dues", limit=50, relative_floor=cut, absolute_floor=0.0))
    assert len(every) == 30
    assert kept == tuple(hit for hit in every if hit.score >= cut)
    assert len(kept) == 11


# --- nothing, and why ---------------------------------------------------------------------


def test_each_kind_of_nothing_says_so(library: Library, tenant: uuid.UUID) -> None:
    assert reason(ask(library, tenant, "harbour")) is NothingReason.EMPTY_CORPUS
    add(library, tenant, document("harbour dues", media_type="application/pdf"))
    csv = SearchFilters(media_types=("text/csv",))
    for mode in SearchMode:
        assert reason(ask(library, tenant, "harbour", mode=mode, filters=csv)) is NothingReason.NO_MATCH
    assert reason(ask(library, tenant, "volcano", mode=KEYWORD)) is NothingReason.NO_MATCH
    assert reason(ask(library, tenant, "volcano", mode=KEYWORD, terms=())) is NothingReason.NO_MATCH
    assert reason(ask(library, tenant, "volcano", mode=VECTOR)) is NothingReason.BELOW_FLOOR
    assert reason(ask(library, tenant, "volcano", mode=HYBRID)) is NothingReason.BELOW_FLOOR


# --- what a hit tells ---------------------------------------------------------------------


def test_a_hit_tells_where_it_stands_and_how_sure_it_is(library: Library, tenant: uuid.UUID) -> None:
    ref = add(
        library,
        tenant,
        document(
            Passage("harbour dues " + "x" * 3000, ("Fees", "Port"), pages=(4, 5), confidence=0.69),
            Passage("harbour quay", confidence=0.7),
            title="Fees of the port",
        ),
    )
    hits = {hit.chunk_id: hit for hit in found(ask(library, tenant, "harbour fees", relative_floor=EVERYTHING))}
    dues, quay = (hits[uuid.uuid5(ref.source_id, str(ordinal))] for ordinal in (0, 1))
    assert (dues.source_id, dues.title, dues.heading_path) == (ref.source_id, "Fees of the port", ("Fees", "Port"))
    assert dues.location.pages == (4, 5)
    assert dues.content.startswith("harbour dues xxx")
    assert len(dues.excerpt) <= 2000
    assert (dues.confidence, dues.low_confidence) == (0.69, True)
    assert (quay.confidence, quay.low_confidence) == (0.7, False)
    assert dues.file_id is None


# --- hostile queries ----------------------------------------------------------------------


def test_a_hostile_query_is_only_a_query(library: Library, tenant: uuid.UUID) -> None:
    add(library, tenant, document("harbour dues"))
    injected = ("'); DROP TABLE chunks; --", ":tenant", "%(x)s", "{}", "\x00", "\ud800", "a" * 100_000, "\\", "harbour")
    many = tuple(f"word{number}" for number in range(2_000))
    for terms in (injected, (*many, "harbour")):
        assert contents(ask(library, tenant, "harbour", mode=KEYWORD, terms=terms)) == ["harbour dues"]
    assert contents(ask(library, tenant, "harbour'; DROP TABLE chunks; -- %s :tenant \\")) == ["harbour dues"]


# --- vectors of the right set -------------------------------------------------------------


@pytest.mark.parametrize("mode", [VECTOR, HYBRID])
def test_a_vector_has_to_belong_to_the_active_set(library: Library, tenant: uuid.UUID, mode: SearchMode) -> None:
    add(library, tenant, document("harbour"))
    good = question(library, "harbour", mode=mode)
    assert good.vector is not None
    size = EMBEDDER.model().dimensions
    for vector in (None, good.vector[:-1], (math.nan, *good.vector[1:]), (0.0,) * size, (math.inf, *good.vector[1:])):
        with pytest.raises(ValueError, match="vector"):
            library.retriever(tenant).search(dataclasses.replace(good, vector=vector))
    library.use_other_set(tenant)
    with pytest.raises(StaleEmbeddingSet):
        library.retriever(tenant).search(good)
    assert contents(ask(library, tenant, "harbour", mode=KEYWORD)) == ["harbour"]


def test_the_active_set_names_its_model(library: Library, tenant: uuid.UUID) -> None:
    active = library.retriever(tenant).active_set()
    assert (active.set_id, active.model) == (library.active_set(), EMBEDDER.model())
    library.use_other_set(tenant)
    assert library.retriever(tenant).active_set().set_id != library.active_set()


# --- both adapters agree ------------------------------------------------------------------


def test_postgres_answers_what_the_reference_answers(in_postgres: PostgresLibrary) -> None:
    chance = random.Random(20)
    words = [f"word{number}" for number in range(60)] + ["ERR-4021", "Q3-2026", "東京都"]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    documents = [
        document(
            *(
                Passage(" ".join(chance.choices(words, weights, k=chance.randint(3, 30))), pages=(1 + number % 3,))
                for number in range(chance.randint(1, 9))
            ),
            subject=chance.choice(("team:red", "team:blue", "team:green")),
            media_type=chance.choice(("text/html", "application/pdf")),
        )
        for _ in range(40)
    ]
    sides = [(side, side.tenant()) for side in (MemoryLibrary(), in_postgres)]
    for one in documents:
        source_id = uuid.UUID(int=chance.getrandbits(128), version=4)
        for side, tenant in sides:
            add(side, tenant, one, source_id)
    for _ in range(30):
        query = " ".join(chance.choices(words, k=chance.randint(1, 5)))
        filters = chance.choice([SearchFilters(), SearchFilters(page=2), SearchFilters(media_types=("text/html",))])
        subjects = chance.choice([RED, BOTH])
        for mode in SearchMode:
            expected, given = (
                ask(side, tenant, query, subjects, mode=mode, filters=filters, limit=50) for side, tenant in sides
            )
            assert _comparable(given) == _comparable(expected), (query, mode, filters)


def _comparable(outcome: RetrievalOutcome) -> object:
    """The outcome with its numbers rounded to what half precision allows."""
    if isinstance(outcome, Nothing):
        return outcome
    return outcome.under_filled, [
        (
            hit.chunk_id,
            hit.content,
            round(hit.score, 6),
            hit.vector and (hit.vector.rank, round(hit.vector.similarity, 3)),
            hit.keyword and (hit.keyword.rank, round(hit.keyword.score, 6)),
        )
        for hit in outcome.hits
    ]
