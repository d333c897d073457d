"""The files of deploy/ agree with the code they start. They are parsed here, not run."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.flow import Queue
from pipeline.settings import PREFIX, Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "docmill"}
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
REPOSITORY = DEPLOY.parent

# Variables of the programs we start, not of Docmill.
FOREIGN = {"REMAP_SIGTERM", "FLOWER_BASIC_AUTH"}


def settings_variables() -> set[str]:
    return {str(field.validation_alias or f"{PREFIX}{name.upper()}") for name, field in Settings.model_fields.items()}


def modules_of(command: list[str]) -> list[str]:
    """The modules (with an attribute) that a command imports."""
    if command[0] == "docmill":
        (script,) = importlib.metadata.entry_points(group="console_scripts", name="docmill")
        return [script.value]
    return [found for word in command for found in re.findall(r"(?:--app=)?((?:tasks|pipeline)[\w.]+:\w+)$", word)]


def option(command: list[str], name: str) -> str:
    return next(word.partition("=")[2] for word in command if word.startswith(f"--{name}="))


def test_every_part_has_its_service() -> None:
    assert set(OURS) == {"migrate", "gateway", "worker", "worker-embed", "beat", "flower"}
    assert set(SERVICES) - set(OURS) == {"postgres", "redis", "s3"}


@pytest.mark.parametrize("name", OURS)
def test_settings_exist(name: str) -> None:
    assert set(OURS[name]["environment"]) - FOREIGN <= settings_variables()


@pytest.mark.parametrize("name", OURS)
def test_command_starts_code_that_exists(name: str) -> None:
    command = OURS[name]["command"]
    (program,) = importlib.metadata.entry_points(group="console_scripts", name=command[0])
    assert program.value
    modules = modules_of(command)
    assert len(modules) == 1
    module, _, attribute = modules[0].partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    assert re.search(rf"^(def {attribute}\(|{attribute}\b.*=)", Path(spec.origin).read_text(), re.MULTILINE)


def test_every_queue_is_consumed_once() -> None:
    consumed = [
        queue
        for service in OURS.values()
        if "worker" in service["command"]
        for queue in option(service["command"], "queues").split(",")
    ]
    assert sorted(consumed) == sorted(str(queue) for queue in Queue)


def test_embedding_has_an_instance_that_never_forks() -> None:
    assert option(OURS["worker-embed"]["command"], "queues") == Queue.EMBED
    assert option(OURS["worker-embed"]["command"], "pool") == "solo"
    assert Queue.EMBED not in option(OURS["worker"]["command"], "queues").split(",")


def test_a_process_that_ends_comes_back() -> None:
    assert {name for name, service in SERVICES.items() if service["restart"] != "always"} == {"migrate"}


def test_a_role_knows_its_own_password_only() -> None:
    urls = {
        name: {variable for variable in service["environment"] if "DATABASE_URL" in variable}
        for name, service in OURS.items()
    }
    assert urls == {
        "migrate": {"DOCMILL_DATABASE_URL_MIGRATOR"},
        "gateway": {"DOCMILL_DATABASE_URL_GATEWAY"},
        "worker": {"DOCMILL_DATABASE_URL_WORKER", "DOCMILL_DATABASE_URL_SWEEP"},
        "worker-embed": {"DOCMILL_DATABASE_URL_WORKER", "DOCMILL_DATABASE_URL_SWEEP"},
        "beat": set(),
        "flower": set(),
    }


def test_nothing_but_the_loopback_is_published() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8000:8000", "127.0.0.1:5555:5555"]


def test_env_example_names_every_variable_and_no_secret() -> None:
    lines = (DEPLOY / "env.example").read_text().splitlines()
    example = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    used = dict(re.findall(r"(?<!\$)\$\{(\w+)(?::([-?][^}]*))?\}", (DEPLOY / "compose.yaml").read_text()))
    assert set(example) == set(used)
    defaults = {name: rest[1:] for name, rest in used.items() if rest.startswith("-")}
    assert {name: example[name] for name in defaults} == defaults
    assert {name: value for name, value in example.items() if name not in defaults and value} == {}


def test_mounted_files_exist() -> None:
    mounts = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    named = {mount for mount in mounts if not mount.startswith(".")}
    assert named == set(COMPOSE["volumes"])
    assert [mount for mount in mounts if mount.startswith(".") and not (DEPLOY / mount).is_file()] == []


def test_every_role_that_logs_in_gets_a_password() -> None:
    roles = set(re.findall(r"ALTER ROLE (\w+) LOGIN", (DEPLOY / "sql" / "bootstrap.sql").read_text()))
    assert set(re.findall(r"ALTER ROLE (\w+) PASSWORD", (DEPLOY / "sql" / "passwords.sh").read_text())) == roles


def test_dockerfile_copies_what_exists_and_gives_up_root() -> None:
    instructions = [shlex.split(line, comments=True) for line in DOCKERFILE.replace("\\\n", " ").splitlines()]
    copied = [
        source
        for words in instructions
        if words[:1] == ["COPY"] and not words[1].startswith("--from")
        for source in words[1:-1]
    ]
    assert [source for source in copied if not (REPOSITORY / source).exists()] == []
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert {f"!{source}" for source in copied} == {line for line in ignored if line.startswith("!")}
    assert [words[1] for words in instructions if words[:1] == ["USER"]] == ["docmill"]
    assert [words[0] for words in instructions if words][-3:] == ["USER", "WORKDIR", "CMD"]


def test_image_holds_what_the_wheel_holds() -> None:
    packages = {"pipeline", "tasks", "models", "storage", "renderers", "celeryconfig.py", "beat_schedule.py"}
    assert packages <= set(re.findall(r"[\w.]+", DOCKERFILE))


def test_the_embedded_stack_runs_the_same_roles() -> None:
    inside = REPOSITORY / "pipeline" / "entrypoints" / "embedded" / "bootstrap.sql"
    assert inside.read_text() == (DEPLOY / "sql" / "bootstrap.sql").read_text()
