"""Metadata filters, alike in every retriever: what they leave, and that they never fail."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.types import Found, NothingReason, SearchFilters, SearchMode
from tests.contract.libraries import Document, Library, Passage, add, document
from tests.contract.questions import EVERYTHING, KEYWORD, ask, contents, found, reason

NOON = datetime(2026, 3, 15, 12, tzinfo=UTC)
SHELF: dict[str, Document] = {
    "pdf": document(
        Passage("harbour on page one", pages=(1,)),
        Passage("harbour on pages two and three", pages=(2, 3)),
        title="pdf",
        media_type="application/pdf",
        language="en",
        document_date=NOON,
        attributes={"department": "finance", "year": 2026},
    ),
    "html": document(
        Passage("harbour at home", metadata={"language": "pt-BR", "tags": ["a", "b"], "department": "port"}),
        Passage("harbour abroad", metadata={"tags": ["b"]}),
        title="html",
        media_type="text/html",
        language="pt",
        document_date=NOON + timedelta(days=30),
        attributes={"draft": True},
    ),
    "undated": document("harbour without a date", title="undated"),
}
PDF = {"harbour on page one", "harbour on pages two and three"}
HTML = {"harbour at home", "harbour abroad"}


def on_the_shelf(library: Library, tenant: uuid.UUID) -> dict[str, uuid.UUID]:
    return {title: add(library, tenant, one).source_id for title, one in SHELF.items()}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (SearchFilters(media_types=("text/html", "text/csv")), HTML),
        (SearchFilters(page=3), {"harbour on pages two and three"}),
        (SearchFilters(page=1, media_types=("application/pdf",)), {"harbour on page one"}),
        (SearchFilters(date_from=NOON, date_to=NOON), PDF),
        (SearchFilters(date_to=NOON - timedelta(days=1)), set()),
        (SearchFilters(date_from=NOON + timedelta(1), date_to=NOON + timedelta(30)), HTML),
        (SearchFilters(language="EN"), PDF),
        (SearchFilters(language="pt"), HTML),
        (SearchFilters(language="pt-br"), {"harbour at home"}),
        (SearchFilters(language="p"), set()),
        (SearchFilters(language="none"), set()),
        (SearchFilters(metadata={"department": "finance"}), PDF),
        (SearchFilters(metadata={"department": "port", "draft": True}), {"harbour at home"}),
        (SearchFilters(metadata={"tags": ["b"]}), HTML),
        (SearchFilters(metadata={"tags": ["b", "a"]}), {"harbour at home"}),
        (SearchFilters(metadata={"tags": "b"}), set()),
        (SearchFilters(metadata={"year": 2026.0}), PDF),
        (SearchFilters(metadata={"draft": 1}), set()),
        (SearchFilters(metadata={"missing": None}), set()),
    ],
)
def test_filters(library: Library, tenant: uuid.UUID, filters: SearchFilters, expected: set[str]) -> None:
    on_the_shelf(library, tenant)
    for mode in SearchMode:
        answer = ask(library, tenant, "harbour", mode=mode, filters=filters, relative_floor=EVERYTHING)
        assert set(contents(answer) if isinstance(answer, Found) else ()) == expected, mode
        if not expected:
            assert reason(answer) is NothingReason.NO_MATCH


def test_a_source_filter_names_sources_of_the_permitted_set(library: Library, tenant: uuid.UUID) -> None:
    names = on_the_shelf(library, tenant)
    hidden = add(library, tenant, document("harbour of others", subject="team:blue"))
    wanted = (names["undated"], hidden.source_id)
    answer = ask(library, tenant, "harbour", filters=SearchFilters(source_ids=wanted))
    assert contents(answer) == ["harbour without a date"]
    only_hidden = ask(library, tenant, "harbour", filters=SearchFilters(source_ids=(hidden.source_id,)))
    never_there = ask(library, tenant, "harbour", filters=SearchFilters(source_ids=(uuid.uuid4(),)))
    assert only_hidden == never_there
    assert reason(only_hidden) is NothingReason.NO_MATCH


def test_a_filter_narrows_and_does_not_rescore(library: Library, tenant: uuid.UUID) -> None:
    on_the_shelf(library, tenant)
    every = {hit.chunk_id: hit.keyword for hit in found(ask(library, tenant, "harbour home date", mode=KEYWORD))}
    (one,) = found(ask(library, tenant, "harbour home date", mode=KEYWORD, filters=SearchFilters(language="pt-br")))
    before = every[one.chunk_id]
    assert before is not None
    assert one.keyword is not None
    assert one.keyword.score == pytest.approx(before.score)


@pytest.mark.parametrize(
    "filters",
    [
        SearchFilters(media_types=("text/\x00html",)),
        SearchFilters(language="\ud800"),
        SearchFilters(page=10**30),
        SearchFilters(page=-1),
        SearchFilters(metadata={"a\x00": 1}),
        SearchFilters(metadata={"a": "\ud800"}),
        SearchFilters(metadata={"a": float("inf")}),
        SearchFilters(metadata={"a'); DROP TABLE chunks; --": "%s :tenant {}"}),
    ],
)
def test_a_filter_nothing_can_meet_matches_nothing(library: Library, tenant: uuid.UUID, filters: SearchFilters) -> None:
    add(library, tenant, document("harbour"))
    assert reason(ask(library, tenant, "harbour", filters=filters)) is NothingReason.NO_MATCH


def test_under_filled_says_that_a_filter_starved_the_answer(library: Library, tenant: uuid.UUID) -> None:
    on_the_shelf(library, tenant)

    def is_under_filled(limit: int, filters: SearchFilters) -> bool:
        answer = ask(library, tenant, "harbour", limit=limit, filters=filters, candidates=50)
        assert isinstance(answer, Found)
        return answer.under_filled

    pdf = SearchFilters(media_types=("application/pdf",))
    assert is_under_filled(3, pdf)
    assert is_under_filled(3, SearchFilters(page=1))
    assert not is_under_filled(2, pdf)
    assert not is_under_filled(10, SearchFilters())
