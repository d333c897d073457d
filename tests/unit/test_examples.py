"""The sample documents are what their script makes, and ask what they are meant to ask."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples import content
from pipeline import words

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
QUESTIONS = json.loads((EXAMPLES / "questions.json").read_text())
# What is compressed or rasterised depends on the versions of fonts and libraries; it is compared with itself.
TEXTS = ("error-codes.html", "handbook.md", "spare-parts.csv")


def made(directory: Path) -> dict[str, bytes]:
    """All documents, made by a process of its own: WeasyPrint changes how Pillow reads for the whole of one."""
    command = [sys.executable, "-m", "examples.make", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return made(tmp_path_factory.mktemp("first"))


def test_made_twice_alike(documents: dict[str, bytes], tmp_path: Path) -> None:
    again = made(tmp_path)
    assert {name for name in documents if again[name] != documents[name]} == set()


def test_committed_is_what_the_script_makes(documents: dict[str, bytes]) -> None:
    committed = {path.name for path in EXAMPLES.iterdir() if path.is_file() and path.suffix not in (".py", ".json")}
    assert committed == set(documents)
    assert {name: (EXAMPLES / name).read_bytes() for name in TEXTS} == {name: documents[name] for name in TEXTS}


def test_expected_documents_exist(documents: dict[str, bytes]) -> None:
    assert {question["file"] for question in QUESTIONS} - {None} <= set(documents)


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
