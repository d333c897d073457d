"""Every setting, typed, read once from the environment and passed down."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.errors import ConfigurationError

PREFIX = "DOCMILL_"
# Read by the command line itself, not by the services.
CLIENT_VARIABLES = frozenset({"DOCMILL_URL", "DOCMILL_TOKEN", "DOCMILL_DATA"})


class EmbeddingChoice(StrEnum):
    LOCAL = "local"
    OPENAI = "openai"


class Settings(BaseSettings):
    """The deployment's settings. Environment variables (or ``.env``), prefix ``DOCMILL_``."""

    # An empty variable is one that is not set: compose files and shells can only say it that way.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True
    )

    # --- dependencies ---
    database_url: SecretStr | None = None
    database_url_gateway: SecretStr | None = None
    database_url_worker: SecretStr | None = None
    database_url_sweep: SecretStr | None = None
    database_url_migrator: SecretStr | None = None
    database_pool_size: int = Field(5, ge=1, le=100)
    broker_url: SecretStr | None = None
    broker_key_prefix: str = "docmill:"
    s3_endpoint: str | None = None
    s3_access_key: SecretStr | None = None
    s3_secret_key: SecretStr | None = None
    s3_bucket: str = "docmill"
    s3_region: str = "us-east-1"
    s3_secure: bool = False

    # --- models ---
    embedding_provider: EmbeddingChoice = EmbeddingChoice.LOCAL
    embedding_model: str = "text-embedding-3-small"
    embedding_dimensions: int = Field(1536, ge=1, le=4000)
    embedding_floor: float = Field(0.55, ge=0, le=1)
    embedding_dir: Path | None = None
    embedding_batch: int = Field(32, ge=1, le=2048)
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(None, validation_alias="OPENAI_BASE_URL")
    ocr_languages: str = "eng"

    # --- identity ---
    jwt_secret: SecretStr | None = None
    jwt_secret_previous: SecretStr | None = None

    # --- workers ---
    worker_processes: int = Field(2, ge=1, le=4096)
    work_dir: Path | None = None
    failpoint: str | None = None
    lease_s: float = Field(20.0, gt=1)
    heartbeat_s: float = Field(5.0, gt=0)
    visibility_timeout_s: int = Field(2460, ge=1)

    # --- limits (contract) ---
    max_bytes: int = Field(100 * 1024 * 1024, ge=1)
    max_pages: int = Field(2_000, ge=1)
    max_text_bytes: int = Field(20 * 1024 * 1024, ge=1)
    max_blocks: int = Field(200_000, ge=1)
    max_cells: int = Field(2_000_000, ge=1)
    max_inflated_bytes: int = Field(512 * 1024 * 1024, ge=1)
    max_inflate_ratio: int = Field(200, ge=1)
    max_image_pixels: int = Field(40_000_000, ge=1)
    extract_timeout_s: float = Field(120.0, gt=0)
    sandbox_memory_bytes: int = Field(1024 * 1024 * 1024, ge=64 * 1024 * 1024)
    low_confidence_threshold: float = Field(0.7, ge=0, le=1)
    relative_floor: float = Field(0.4, ge=0, le=1)

    # --- operations ---
    log_level: str = "INFO"
    superseded_retention_s: int = Field(600, ge=600)


def load(**overrides: Any) -> Settings:
    """Read the settings once.

    Raises :class:`ConfigurationError` with the variable's name and what it expects when one is wrong, and
    when the environment holds a ``DOCMILL_`` variable that nothing reads.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields} | CLIENT_VARIABLES
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX) and variable.upper() not in known:
            raise ConfigurationError(f"{variable} is not a setting; docs/operations.md lists all of them")
    try:
        return Settings(**overrides)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        variable = name if name.startswith("OPENAI") else PREFIX + name.upper()
        raise ConfigurationError(f"{variable}: {first['msg']}") from None


def require(value: SecretStr | str | None, variable: str, expects: str) -> str:
    """The value of a setting that this process cannot do without.

    Raises :class:`ConfigurationError` naming the variable and what it expects.
    """
    if value is None or (text := value.get_secret_value() if isinstance(value, SecretStr) else value) == "":
        raise ConfigurationError(f"{variable} is not set; it expects {expects}")
    return text
