"""The command line without a gateway: what it takes, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.entrypoints.cli import arguments, batch, client, connection, ingest, main, search, terminal
from pipeline.entrypoints.cli.batch import Batch, Document
from pipeline.entrypoints.cli.client import Gateway, Problem, Unreachable
from pipeline.entrypoints.cli.connection import Connection
from pipeline.entrypoints.cli.outcome import CommandError, Exit

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings, no .env file and no stack of whoever runs the tests."""
    for name in ("DOCMILL_URL", "DOCMILL_TOKEN", "DOCMILL_DATABASE_URL_MIGRATOR", "DOCMILL_JWT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCMILL_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def _gateway(handler: Handler) -> Gateway:
    return Gateway(Connection("http://gateway", "token"), httpx.MockTransport(handler))


# --- what it takes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["fly"],
        ["ingest"],
        ["search"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--limit", "51"],
        ["search", "x", "--mode", "graph"],
        ["search", "x", "--lim", "3"],
        ["read", "id", "--pages", "3-2"],
        ["read", "id", "--pages", "0"],
        ["read", "id", "--from-block", "-1"],
        ["up", "--port", "65536"],
        ["up", "--workers", "0"],
        ["token", "--ttl", "0"],
        ["delete"],
    ],
)
def test_usage_errors_are_one_line_and_end_with_two(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(argv)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "--help" in err


@pytest.mark.parametrize(
    "command", ["up", "ingest", "search", "read", "status", "list", "delete", "token", "migrate", "version"]
)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([command, "--help"])
    assert ended.value.code == 0
    assert "usage: docmill " + command in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["version"]) == 0
    assert re.fullmatch(r"docmill \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_pages() -> None:
    assert arguments.parser().parse_args(["read", "id", "--pages", "3-7"]).pages == (3, 7)
    assert arguments.parser().parse_args(["read", "id", "--pages", "12"]).pages == (12, 12)


# --- which gateway --------------------------------------------------------------------------


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_URL", "http://elsewhere")
    with pytest.raises(CommandError, match="DOCMILL_TOKEN") as missing:
        connection.find(None)
    assert missing.value.code is Exit.USAGE
    monkeypatch.setenv("DOCMILL_TOKEN", "t")
    assert connection.find(None) == Connection("http://elsewhere", "t")


def test_then_the_running_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="docmill up") as missing:
        connection.find(None)
    assert missing.value.code is Exit.NOT_REACHABLE
    data = tmp_path / "data"
    data.mkdir()
    (data / "stack.json").write_text(json.dumps({"url": "http://127.0.0.1:8001"}))
    (data / "token").write_text("from-stack\n")
    assert connection.find(None) == Connection("http://127.0.0.1:8001", "from-stack")
    monkeypatch.setenv("DOCMILL_URL", "http://elsewhere")
    monkeypatch.setenv("DOCMILL_TOKEN", "other")
    assert connection.find(data) == Connection("http://127.0.0.1:8001", "from-stack")


def test_an_env_file_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DOCMILL_URL=http://from-file\nDOCMILL_TOKEN=filed\n")
    assert connection.find(None) == Connection("http://from-file", "filed")


# --- what the gateway answers ---------------------------------------------------------------


def test_answers_become_exit_codes() -> None:
    def refuse(status: int, code: str) -> Handler:
        return lambda _: httpx.Response(status, json={"code": code, "detail": "No such source.", "status": status})

    for status, code, ended in (
        (404, "not_found", Exit.ERROR),
        (401, "unauthenticated", Exit.ERROR),
        (503, "unavailable", Exit.NOT_REACHABLE),
    ):
        with pytest.raises(Problem, match="No such source") as problem:
            _gateway(refuse(status, code)).get("/v1/sources/x")
        assert problem.value.code is ended

    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable, match="http://gateway") as problem_:
        _gateway(away).get("/v1/sources")
    assert problem_.value.code is Exit.NOT_REACHABLE
    with pytest.raises(CommandError, match="no Docmill gateway"):
        _gateway(lambda _: httpx.Response(200, text="<html>")).get("/v1/sources")


@pytest.mark.parametrize("url", ["http://", "http://x:port", "localhost:8000", "ftp://x", "x"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(CommandError, match="malformed"):
        Gateway(Connection(url, "t"))


def test_lists_are_read_to_their_end() -> None:
    def pages(request: httpx.Request) -> httpx.Response:
        cursor = request.url.params.get("cursor")
        return httpx.Response(200, json={"items": [cursor], "next_cursor": {None: "a", "a": "b"}.get(cursor)})

    assert list(_gateway(pages).items("/v1/sources")) == [None, "a", "b"]


def test_ids_cannot_name_another_call() -> None:
    assert client.source("../files?x#y", "/document") == "/v1/sources/..%2Ffiles%3Fx%23y/document"


# --- what it prints -------------------------------------------------------------------------


def test_documents_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[2J\x07b\u202ec\u200ed\x9be\r\nf"
    assert terminal.line(hostile) == "a[2Jbcde f"
    terminal.document({"title": hostile})
    out = capsys.readouterr().out
    assert out.isascii()
    assert "\x1b" not in out
    assert json.loads(out)["title"] == hostile


def test_bytes_of_another_encoding_are_no_reason_to_fail(tmp_path: Path) -> None:
    typed = os.fsdecode(b"caf\xe9")
    assert terminal.sendable(typed) == "caf?"
    assert client.source(typed) == "/v1/sources/caf%3F"
    path = tmp_path / (typed + ".txt")
    path.write_text("x")
    script = Script(_source("ready", "published"))
    list(Batch(_gateway(script), [Document(path)], {}).run(wait=True))
    assert b'filename="caf?.txt"' in script.uploads[0].read()


def test_places_in_words() -> None:
    nowhere: dict[str, Any] = {"pages": [], "slide": None, "sheet": None, "cells": None}
    assert search.place({**nowhere, "pages": [3]}) == "page 3"
    assert search.place({**nowhere, "pages": [3, 4, 5]}) == "pages 3-5"
    assert search.place({**nowhere, "slide": 2}) == "slide 2"
    assert search.place({**nowhere, "sheet": "Prices", "cells": "A1:B2"}) == "Prices A1:B2"
    assert search.place(nowhere) == ""


# --- ingest ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "folder"
    for name in ("a.txt", "b/c.md", "b/.hidden/d.txt", ".e.txt", "b/f.exe"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "b" / "loop").symlink_to(root)
    return root


def test_what_is_found(folder: Path) -> None:
    found = [str(document.path.relative_to(folder)) for document in batch.find([str(folder)], recursive=True)]
    assert found == ["a.txt", "b/c.md", "b/f.exe"]
    twice = batch.find([str(folder / "a.txt"), str(folder / "a.txt")], recursive=False)
    assert len(twice) == 1


@pytest.mark.parametrize(
    ("name", "said"), [("missing", "not there"), ("https://example.org/a.pdf", "is an address"), (".", "--recursive")]
)
def test_what_cannot_be_found_is_a_usage_error(name: str, said: str) -> None:
    with pytest.raises(CommandError, match=said) as problem:
        batch.find([name], recursive=False)
    assert problem.value.code is Exit.USAGE


def _source(status: str, latest: str, failure: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "s", "status": status, "latest": {"status": latest}, "failure": failure, "pages": 3, "chunks": 5,
        "stage": "extract", "progress": {"done": 1, "total": 3}, **more,
    }  # fmt: skip


class Script:
    """A gateway that answers an upload, then each look at the source with the next of its states."""

    def __init__(self, *states: httpx.Response | dict[str, Any], upload: httpx.Response | None = None) -> None:
        self.uploads: list[httpx.Request] = []
        self._states: Iterator[httpx.Response | dict[str, Any]] = iter(states)
        self._upload = upload

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            request.read()
            self.uploads.append(request)
            return self._upload or httpx.Response(201, json={"id": "f", "source_id": "s"})
        state = next(self._states)
        return state if isinstance(state, httpx.Response) else httpx.Response(200, json=state)


@pytest.fixture
def note(tmp_path: Path) -> Document:
    path = tmp_path / "note.txt"
    path.write_text("turnips")
    return Document(path)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_PAUSE_S", 0.0)
    monkeypatch.setattr(batch, "_FASTEST_LOOK_S", 0.0)


def test_a_document_is_followed_to_its_end(note: Document) -> None:
    script = Script(_source("pending", "queued"), _source("ingesting", "ingesting"), _source("ready", "published"))
    list(Batch(_gateway(script), [note], {"priority": "bulk", "subject": "team"}).run(wait=True))
    assert note.report() == {
        "path": str(note.path), "file_id": "f", "source_id": "s", "status": "ready", "failure": None, "pages": 3,
        "chunks": 5,
    }  # fmt: skip
    sent = script.uploads[0].read()
    assert b'name="priority"\r\n\r\nbulk' in sent
    assert b'name="subject"\r\n\r\nteam' in sent
    assert b"Content-Type: text/plain\r\n\r\nturnips" in sent


def test_without_waiting_the_upload_is_all(note: Document) -> None:
    list(Batch(_gateway(Script(_source("pending", "queued"))), [note], {}).run(wait=False))
    assert (note.status, note.failed) == ("pending", False)


@pytest.mark.parametrize(("code", "counts"), [("encrypted", True), ("empty", False), ("skipped", False)])
def test_failures_count_unless_there_was_nothing_to_do(note: Document, code: str, counts: bool) -> None:
    failure = {"code": code, "detail": "d", "remedy": "r", "retryable": False}
    list(Batch(_gateway(Script(_source("failed", "failed", failure))), [note], {}).run(wait=True))
    assert (note.report()["failure"], note.failed) == (failure, counts)


@pytest.mark.parametrize(("kind", "code"), [("too_large", "too-large"), ("unsupported_type", "unsupported-type")])
def test_a_refused_upload_is_that_documents_failure(note: Document, kind: str, code: str) -> None:
    refusal = httpx.Response(413, json={"code": kind, "detail": "Too much."})
    list(Batch(_gateway(Script(upload=refusal)), [note], {}).run(wait=True))
    report = note.report()
    assert (report["status"], report["source_id"], report["failure"]["code"]) == ("failed", None, code)
    assert report["failure"]["remedy"]


def test_a_type_that_is_not_taken_is_not_even_sent(tmp_path: Path) -> None:
    paths = [tmp_path / "a.exe", tmp_path / "README"]
    for path in paths:
        path.write_text("x")
    script = Script()
    documents = [Document(path) for path in paths]
    list(Batch(_gateway(script), documents, {}).run(wait=True))
    assert [document.report()["failure"]["code"] for document in documents] == ["unsupported-type"] * 2
    assert script.uploads == []


def test_what_is_no_matter_of_the_document_ends_it_all(note: Document) -> None:
    refusal = httpx.Response(404, json={"code": "not_found", "detail": "No such subject."})
    with pytest.raises(Problem, match="No such subject"):
        list(Batch(_gateway(Script(upload=refusal)), [note], {}).run(wait=True))


def test_a_gateway_that_is_away_for_a_moment_is_waited_for(note: Document) -> None:
    away = httpx.Response(503, json={"code": "unavailable", "detail": "Away."})
    script = Script(away, away, _source("ready", "published"))
    answers = iter([away, httpx.Response(409, json={"code": "conflict", "detail": "Under way."}), None])
    keys: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            keys.append(request.headers["idempotency-key"])
            answer = next(answers)
            return answer if answer is not None else script(request)
        return script(request)

    list(Batch(_gateway(handler), [note], {}).run(wait=True))
    assert note.status == "ready"
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_gateway_that_is_not_there_is_said_at_once(note: Document) -> None:
    attempts = []

    def away(request: httpx.Request) -> httpx.Response:
        attempts.append(request)
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable):
        list(Batch(_gateway(away), [note], {}).run(wait=True))
    assert len(attempts) == 1


def test_a_source_deleted_meanwhile_is_that_documents_failure(note: Document) -> None:
    gone = httpx.Response(404, json={"code": "not_found", "detail": "No such source."})
    list(Batch(_gateway(Script(_source("pending", "queued"), gone)), [note], {}).run(wait=True))
    assert note.report()["failure"]["code"] == "cancelled"


def test_bulk_is_more_than_five_or_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []

    class Noted(Batch):
        def run(self, *, wait: bool) -> Iterator[Document]:
            chosen.append(self._fields["priority"])
            return iter(())

    monkeypatch.setattr(ingest, "Batch", Noted)
    monkeypatch.setenv("DOCMILL_URL", "http://gateway")
    monkeypatch.setenv("DOCMILL_TOKEN", "t")
    names = [str(tmp_path / f"{number}.txt") for number in range(6)]
    for name in names:
        Path(name).write_text("x")
    main.main(["ingest", *names[:5]])
    main.main(["ingest", *names])
    main.main(["ingest", "--recursive", names[0]])
    assert chosen == ["interactive", "bulk", "bulk"]
