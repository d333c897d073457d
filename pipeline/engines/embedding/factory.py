"""Choose the embedding adapter the settings name."""

from __future__ import annotations

from pydantic import SecretStr

from pipeline.ports import EmbeddingProvider
from pipeline.settings import EmbeddingChoice, Settings, require


def build_embedder(settings: Settings) -> EmbeddingProvider:
    """The EmbeddingProvider of a deployment; loads no model and opens no connection.

    Only the chosen adapter's library is imported: the others cost a hundred megabytes in every process.
    Raises :class:`~pipeline.errors.ConfigurationError` when the hosted one is chosen without a key.
    """
    if settings.embedding_provider is EmbeddingChoice.OPENAI:
        from pipeline.engines.embedding.openai import OpenAIEmbedding, OpenAISettings

        key = require(settings.openai_api_key, "OPENAI_API_KEY", "the key of the embedding endpoint")
        return OpenAIEmbedding(
            OpenAISettings(
                api_key=SecretStr(key),
                base_url=settings.openai_base_url,
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                absolute_floor=settings.embedding_floor,
                batch=settings.embedding_batch,
            )
        )
    from pipeline.engines.embedding.local import LocalEmbedding

    return LocalEmbedding(settings.embedding_dir, absolute_floor=settings.embedding_floor)
