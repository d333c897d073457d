"""``docmill`` against a gateway with a worker: documents in, cited answers out, and gone again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from pipeline.entrypoints.cli import main
from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.deployment import Deployment
from tests.services_host import MIGRATED


@pytest.fixture(scope="module")
def deployment(services: EmbeddedServices, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    database = f"cli_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_database(MIGRATED, database)
    made = Deployment(
        services.settings_environment(database),
        services.database_url("postgres", database),
        tmp_path_factory.mktemp("deployment"),
    )
    assert made.services
    yield made
    made.stop()


@pytest.fixture(scope="module")
def address(deployment: Deployment) -> Iterator[str]:
    """The gateway as its own process, started as in production, with a worker behind it."""
    deployment.start_worker(concurrency=1)
    deployment.start_beat()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with (deployment.directory / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "uvicorn",
                "--factory",
                "pipeline.entrypoints.gateway.app:serve",
                "--port",
                str(port),
            ],
            env={**os.environ, **deployment.environment},
            stdout=log,
            stderr=log,
        )

    def answers() -> bool:
        assert process.poll() is None, deployment.logs()
        try:
            return httpx.get(f"{url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    deployment.wait_for(answers, 60)
    yield url
    process.terminate()
    process.wait(20)


class Terminal:
    """Runs commands as a user would; ``docmill`` gives the exit code, stdout and stderr."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def docmill(self, *argv: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = main.main(argv)
        return (code, *self._capsys.readouterr())

    def json(self, *argv: str) -> tuple[int, Any]:
        code, out, _ = self.docmill(*argv, "--json")
        return code, json.loads(out)


@pytest.fixture
def terminal(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Terminal:
    """A terminal of an operator, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("DOCMILL_DATABASE_URL_MIGRATOR", "DOCMILL_JWT_SECRET"):
        monkeypatch.setenv(name, deployment.environment[name])
    return Terminal(capsys)


@pytest.fixture
def user(terminal: Terminal, address: str, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of a user with the token of a tenant of its own."""
    code, token, _ = terminal.docmill("token", "--tenant", f"t{os.urandom(6).hex()}", "--subject", "team")
    assert code == 0
    monkeypatch.setenv("DOCMILL_URL", address)
    monkeypatch.setenv("DOCMILL_TOKEN", token.strip())
    return terminal


def test_documents_in_answers_out_and_gone_again(user: Terminal, tmp_path: Path) -> None:
    (tmp_path / "garden.md").write_text("# Garden\n\n## Sowing\n\nTurnips are sown in the second half of July.\n")
    (tmp_path / "prices.csv").write_text("part,price\nbolt,3.50\nnut,0.20\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (tmp_path / "tool.exe").write_bytes(b"MZ")
    (tmp_path / "nothing.txt").write_bytes(b"")

    code, documents = user.json("ingest", str(tmp_path), "--recursive")
    assert code == 3
    by_name = {Path(document["path"]).name: document for document in documents}
    assert {name: document["status"] for name, document in by_name.items()} == {
        "garden.md": "ready", "prices.csv": "ready", "broken.pdf": "failed", "tool.exe": "failed",
        "nothing.txt": "failed",
    }  # fmt: skip
    assert {name: document["failure"]["code"] for name, document in by_name.items() if document["failure"]} == {
        "broken.pdf": "malformed", "tool.exe": "unsupported-type", "nothing.txt": "empty",
    }  # fmt: skip
    assert by_name["garden.md"]["chunks"] >= 1
    garden = by_name["garden.md"]["source_id"]

    code, out, _ = user.docmill("search", "When are turnips sown?", "--limit", "1")
    assert code == 0
    assert out.startswith("1. Garden")
    assert "second half of July" in out
    assert garden in out
    code, answer = user.json("search", "turnips", "--mode", "keyword", "--source", by_name["prices.csv"]["source_id"])
    assert (code, answer["outcome"], answer["reason"]) == (4, "nothing", "no-match")

    code, out, _ = user.docmill("read", garden)
    assert (code, out) == (0, "# Garden\n\n## Sowing\n\nTurnips are sown in the second half of July.\n")
    assert user.json("read", garden, "--from-block", "2")[1]["markdown"].startswith("Turnips")
    assert user.docmill("read", by_name["broken.pdf"]["source_id"])[0] == 4

    code, out, _ = user.docmill("status", by_name["broken.pdf"]["source_id"])
    assert code == 0
    assert "malformed" in out
    assert "Re-export" in out
    assert "2 ready" in user.docmill("status")[1]
    assert len(user.docmill("list")[1].splitlines()) == 3
    assert {source["id"] for source in user.json("list")[1]["items"]} >= {garden}

    code, receipt = user.json("delete", garden)
    assert (code, receipt["complete"]) == (0, True)
    assert receipt["stores"]["chunks"]["before"] >= 1
    assert {counts["after"] for counts in receipt["stores"].values()} == {0}
    code, _, err = user.docmill("read", garden)
    assert (code, err) == (1, "docmill: No such source.\n")


def test_one_document_followed_on_a_terminal(user: Terminal, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The library lends books.")
    code, out, _ = user.docmill("ingest", "a.txt", "--subject", "team")
    assert code == 0
    assert out.startswith("ready    a.txt (0 pages, 1 chunk) ")
    assert [source["subject"] for source in user.json("list")[1]["items"]] == ["team"]
    code, documents = user.json("ingest", "a.txt", "--no-wait")
    assert (code, documents[0]["status"] in ("pending", "ingesting")) == (0, True)
    code, _, err = user.docmill("ingest", "a.txt", "--subject", "board")
    assert (code, err) == (1, "docmill: No such subject.\n")


def test_tokens(terminal: Terminal, deployment: Deployment) -> None:
    code, out, _ = terminal.docmill(
        "token", "--tenant", "acme", "--user", "ben", "--scope", "admin", "--scope", "x", "--ttl", "60"
    )
    assert code == 0
    claims = jwt.decode(out.strip(), deployment.environment["DOCMILL_JWT_SECRET"], algorithms=["HS256"])
    assert (claims["sub"], claims["scope"], claims["exp"] - claims["iat"]) == ("ben", "admin x", 60)
    again = terminal.docmill("token", "--tenant", "acme")[1]
    other = jwt.decode(again.strip(), options={"verify_signature": False})
    assert other["tenant"] == claims["tenant"]
    for wrong in (("--tenant", "A b"), ("--user", ""), ("--subject", "a\nb")):
        code, out, err = terminal.docmill("token", *wrong)
        assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_migrate_says_what_is_missing_and_may_be_repeated(
    terminal: Terminal, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert terminal.docmill("migrate")[0] == 0
    monkeypatch.delenv("DOCMILL_DATABASE_URL_MIGRATOR")
    code, _, err = terminal.docmill("migrate")
    assert (code, "DOCMILL_DATABASE_URL_MIGRATOR" in err, len(err.splitlines())) == (1, True, 1)
    monkeypatch.setenv("DOCMILL_DATABASE_URL_MIGRATOR", "postgresql://nobody@127.0.0.1:1/none")
    code, _, err = terminal.docmill("migrate")
    assert (code, len(err.splitlines())) == (1, 1)


def test_a_gateway_that_is_not_there(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("DOCMILL_TOKEN", "t")
    for argv in (["list"], ["search", "x"], ["delete", "x"]):
        code, out, err = terminal.docmill(*argv)
        assert (code, out, len(err.splitlines())) == (5, "", 1)
