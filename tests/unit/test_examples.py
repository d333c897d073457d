"""The sample documents are what their script makes, and ask what they are meant to ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples import content, make
from pipeline import words

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = json.loads((EXAMPLES / "questions.json").read_text())
# What is compressed or rasterised depends on the versions of fonts and libraries; it is compared with itself.
TEXTS = ("error-codes.html", "handbook.md", "spare-parts.csv")


@pytest.mark.parametrize("name", make.DOCUMENTS)
def test_made_twice_alike(name: str) -> None:
    assert make.DOCUMENTS[name]() == make.DOCUMENTS[name]()


@pytest.mark.parametrize("name", TEXTS)
def test_committed_is_what_the_script_makes(name: str) -> None:
    assert make.DOCUMENTS[name]() == (EXAMPLES / name).read_bytes()


def test_every_document_is_committed_and_expected_ones_exist() -> None:
    assert [name for name in make.DOCUMENTS if not (EXAMPLES / name).is_file()] == []
    assert {question["file"] for question in QUESTIONS} - {None} <= set(make.DOCUMENTS)


def test_the_paraphrase_shares_no_word_with_its_answer() -> None:
    (question,) = [one for one in QUESTIONS if one["about"].startswith("a paraphrase")]
    leave = content.HANDBOOK.split("## ")[2]
    assert question["phrase"] in leave
    assert set(words.query_terms(question["question"])).isdisjoint(words.terms(leave))


def test_the_last_question_shares_no_word_with_any_document() -> None:
    (question,) = [one for one in QUESTIONS if one["file"] is None]
    everything = " ".join(str(value) for name, value in vars(content).items() if name.isupper())
    assert set(words.query_terms(question["question"])).isdisjoint(words.terms(everything))


def test_similar_codes_mean_different_things() -> None:
    meanings = {code: meaning for code, _, meaning, _ in content.ERROR_CODES}
    (question,) = [one for one in QUESTIONS if "ERR-4021" in one["question"]]
    assert question["phrase"] in meanings["ERR-4021"]
    assert question["phrase"] not in meanings["ERR-4022"]
