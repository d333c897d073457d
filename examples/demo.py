"""The demonstration behind `make demo`: start the stack, ingest the samples, ask five questions, check the answers.

It does nothing but run the ``docmill`` command, as a person would, in a fresh data directory that goes at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCMILL = str(Path(sys.executable).with_name("docmill"))
READY_WITHIN_S = 120
STOPPED_WITHIN_S = 60
# Exit codes of the command line: documents found, nothing found.
FOUND, NOTHING = 0, 4


def main() -> int:
    """0 when every question got the answer that questions.json expects, else 1."""
    began = time.monotonic()
    questions = json.loads((HERE / "questions.json").read_text())
    with fresh_directory() as data, running_stack(data) as environment:
        print("\n# Ingest", flush=True)
        file_names = ingest(sample_documents(), environment)
        print("\n# Ask", flush=True)
        right = [ask(question, file_names, environment) for question in questions]
    print(f"\n{sum(right)} of {len(right)} answers as expected, {time.monotonic() - began:.0f} s in all")
    return 0 if all(right) else 1


def sample_documents() -> list[Path]:
    """Everything in this folder but the scripts and their data."""
    return sorted(path for path in HERE.iterdir() if path.is_file() and path.suffix not in (".py", ".json"))


@contextmanager
def fresh_directory() -> Iterator[Path]:
    # Passable, because as root the database runs under an account of its own; every part of it is private by itself.
    directory = Path(tempfile.mkdtemp(prefix="docmill-demo-"))
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextmanager
def running_stack(data: Path) -> Iterator[dict[str, str]]:
    """The environment in which `docmill` finds a stack that is ready; stopped afterwards, whatever happened."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")}
    environment["DOCMILL_DATA"] = str(data)
    ready = data / "ready"
    print("# Start", flush=True)
    stack = subprocess.Popen(
        [DOCMILL, "up", "--data", str(data), "--ready-file", str(ready)], env=environment, stdin=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + READY_WITHIN_S
        while not ready.exists():
            if stack.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("error: the stack did not start; its last words are above")
            time.sleep(0.1)
        yield environment
    finally:
        print("\n# Stop", flush=True)
        stack.send_signal(signal.SIGTERM)
        stack.wait(STOPPED_WITHIN_S)


def ingest(paths: Sequence[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """Ingest, with progress on the screen; the name of each file by the id of its source."""
    done = subprocess.run([DOCMILL, "ingest", *map(str, paths)], env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit("error: not every sample document became ready; the reasons are above")
    data = Path(environment["DOCMILL_DATA"])
    url, token = json.loads((data / "stack.json").read_text())["url"], (data / "token").read_text().strip()
    request = urllib.request.Request(f"{url}/v1/files", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - ours
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - the gateway of our own stack
        files = json.load(answer)["items"]
    return {source: file["filename"] for file in files for source in file["sources"]}


def ask(expected: Mapping[str, Any], file_names: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Ask one question, print the first hit or the reason for none, and say whether it is what was expected."""
    print(f"\n? {expected['question']}  ({expected['about']})")
    command = [DOCMILL, "search", "--json", expected["question"]]
    asked = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if asked.returncode not in (FOUND, NOTHING):
        return False
    answer = json.loads(asked.stdout)
    if answer["outcome"] == "nothing":
        print(f"= nothing ({answer['reason']}): {answer['message']}")
        right = expected["file"] is None
    else:
        hit = answer["hits"][0]
        file, pages = file_names[hit["source_id"]], hit["location"]["pages"]
        print(f"= {file}{f', page {pages[0]}' if pages else ''}")
        for line in filter(str.strip, hit["excerpt"].splitlines()):
            print(textwrap.fill(line, 110, initial_indent="  | ", subsequent_indent="  | "))
        right = (
            file == expected["file"]
            and (expected["page"] is None or expected["page"] in pages)
            and expected["phrase"] in " ".join(hit["excerpt"].split())
        )
    print("  as expected" if right else f"  NOT AS EXPECTED: {expected}", flush=True)
    return right


if __name__ == "__main__":
    raise SystemExit(main())
