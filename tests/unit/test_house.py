"""The rules of the house that no linter knows: sizes, layers, the wheel, what is declared and what is documented."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import importlib.util
import io
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.settings import PREFIX, Settings
from tests import budget

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("pipeline", "tasks", "models", "storage", "renderers")
TOP_LEVEL = {*PACKAGES, "celeryconfig.py", "beat_schedule.py"}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60


def tracked() -> list[Path]:
    """The files of the repository, without those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def python_files() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py"]


# --- the wheel ---


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (built,) = directory.iterdir()
    return zipfile.ZipFile(io.BytesIO(built.read_bytes()))


def test_wheel_has_exactly_our_top_level_names(wheel: zipfile.ZipFile) -> None:
    names = {name.split("/")[0] for name in wheel.namelist()}
    assert names == {*TOP_LEVEL, f"docmill-{PROJECT['version']}.dist-info"}


def test_wheel_has_everything_that_git_has(wheel: zipfile.ZipFile) -> None:
    ours = {str(path.relative_to(ROOT)) for path in tracked()}
    expected = {name for name in ours if name.split("/")[0] in TOP_LEVEL}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
    assert any(name.startswith("models/migrations/versions/") and name.endswith(".sql") for name in expected)
    assert "pipeline/entrypoints/embedded/bootstrap.sql" in expected


def test_wheel_has_the_console_script_and_the_licence(wheel: zipfile.ZipFile) -> None:
    info = f"docmill-{PROJECT['version']}.dist-info"
    assert "docmill = pipeline.entrypoints.cli.main:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert "Private :: Do Not Upload" in wheel.read(f"{info}/METADATA").decode()


# --- layers and sizes ---


def test_imports_go_down_only() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in python_files()}
    assert {str(path): lines for path, lines in lengths.items() if lines >= MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{node.name}": lines
        for path in python_files()
        if "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) >= MAX_FUNCTION_LINES
    }
    assert long == {}


# --- dependencies ---


def imported_packages(paths: list[Path]) -> set[str]:
    """Top-level names of everything imported, wherever the import stands."""
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    ours = {*PACKAGES, "tests", "examples", "benchmarks", "celeryconfig", "beat_schedule"}
    return found - ours - set(sys.stdlib_module_names)


def normalised(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_import_is_a_declared_dependency() -> None:
    distributions = importlib.metadata.packages_distributions()
    declared = {normalised(requirement) for requirement in PROJECT["dependencies"]}
    extras = {normalised(one) for group in PROJECT["optional-dependencies"].values() for one in group}
    application = [path for path in python_files() if str(path.relative_to(ROOT)).split("/")[0] in TOP_LEVEL]
    for paths, allowed in ((application, declared), (python_files(), declared | extras)):
        undeclared = {
            package
            for package in imported_packages(paths)
            if not {normalised(name) for name in distributions.get(package, [package])} & allowed
        }
        assert undeclared == set()


def test_every_dependency_is_pinned_by_the_lock_and_free_to_distribute() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = dict(line.lower().replace("_", "-").replace(".", "-", 0).split("==") for line in lines if "==" in line)
    pinned = {normalised(name) for name in pins}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    assert {normalised(one) for group in groups for one in group} - pinned == set()
    assert [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.+!-]+", line)] == []
    # Their licences would bind whoever distributes the whole.
    assert pinned & {"pypandoc-binary", "pymupdf", "torch", "html2text", "docxtpl", "text-unidecode"} == set()


# --- what is documented ---


def settings_of_operations() -> dict[str, str]:
    """Variable to default, as the tables of docs/operations.md have them."""
    page = (ROOT / "docs" / "operations.md").read_text()
    return dict(re.findall(r"^\| `((?:DOCMILL|OPENAI)_\w+)` \| ([^|]*?) \|", page, re.MULTILINE))


def shown(default: object) -> str:
    return "" if default is None else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_every_setting_is_documented_with_its_default() -> None:
    defaults = {
        str(field.validation_alias or f"{PREFIX}{name.upper()}"): shown(field.default)
        for name, field in Settings.model_fields.items()
    }
    assert settings_of_operations() == defaults


def test_every_make_target_is_explained_and_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    explained = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    assert explained >= {
        *("help", "setup", "demo", "up", "test", "lint", "types", "fmt", "bench", "faults", "build", "clean")
    }
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run", *(ROOT / "docs").rglob("*.md")]
    named = {
        target
        for page in pages
        for call in re.findall(r"(?:^(?: {4})?|`)make ((?:[a-z]+ ?)+)", page.read_text(), re.MULTILINE)
        for target in call.split()
    }
    assert named <= explained
    assert {"setup", "demo", "test"} <= named


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in tracked()
        if page.suffix == ".md" and "examples" not in page.parts
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_budgets_are_the_ones_of_contributing() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = {
        folder: int(seconds) for folder, seconds in re.findall(r"^\| `tests/(\w+)` \| (\d+) \|", page, re.MULTILINE)
    }
    assert table == budget.BUDGETS_S
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in tracked() if re.match(r"test_\w+\.py", path.name)}
    assert folders == set(budget.BUDGETS_S)


# --- the project speaks of itself only ---

# Put together here, so that this file does not contain what it looks for.
FOREIGN = re.compile(
    "|".join(
        [
            "/work" + "/(?:main|shared)",
            "/ro" + "ot/",
            r"pypi\.(?:org|python)",
            "file" + "s.pythonhosted",
            "--(?:extra-)?index" + "-url",
            "deb" + "ian.org",
        ]
    )
)


def texts() -> Iterator[tuple[Path, str]]:
    for path in tracked():
        with contextlib.suppress(UnicodeDecodeError):
            yield path, path.read_text()


def test_nothing_depends_on_the_machine_it_was_written_on() -> None:
    found = {f"{path.relative_to(ROOT)}: {match[0]}" for path, text in texts() for match in FOREIGN.finditer(text)}
    assert found == set()
