"""The gateway as an ASGI application. Started as ``uvicorn --factory pipeline.entrypoints.gateway.app:serve``."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import anyio
from fastapi import FastAPI
from starlette.middleware import Middleware

from pipeline import logs, settings
from pipeline.bootstrap import GatewayServices, gateway_services
from pipeline.entrypoints.gateway import docs, events, files, operations, problems, search, sources
from pipeline.entrypoints.gateway.edge import Edge
from pipeline.entrypoints.gateway.identity import token_reader
from pipeline.entrypoints.gateway.metrics import Metrics
from pipeline.errors import ConfigurationError, TransientError
from pipeline.settings import Settings

_DESCRIPTION = "Documents in, cited answers out. Every call of /v1 takes a bearer token; errors are problem documents."


def create_app(services: GatewayServices, deployment: Settings) -> FastAPI:
    """The application over these services. Raises ConfigurationError when no token could be checked."""
    counters = Metrics()
    app = Gateway(
        title="Docmill",
        version=metadata.version("docmill"),
        description=_DESCRIPTION,
        redoc_url=None,
        docs_url=None,
        redirect_slashes=False,
        middleware=[Middleware(Edge, metrics=counters)],
    )
    app.state.services = services
    app.state.settings = deployment
    app.state.metrics = counters
    app.state.token_reader = token_reader(deployment, services.tenants)
    app.state.store_threads = anyio.CapacityLimiter(files.STORING_AT_ONCE)
    app.state.event_polls = anyio.CapacityLimiter(events.CONCURRENT_LOOKS)
    problems.install(app)
    for router in (files.router, sources.router, search.router, operations.router, docs.router):
        app.include_router(router)
    return app


def serve() -> FastAPI:
    """The application of this process's environment; ends the process with one line when it cannot be built."""
    try:
        deployment = settings.load()
        logs.configure(deployment.log_level)
        return create_app(gateway_services(deployment), deployment)
    except (ConfigurationError, TransientError) as problem:
        raise SystemExit(f"error: {problem}") from problem


class Gateway(FastAPI):
    """FastAPI whose description names our problem documents instead of its own errors."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            described = super().openapi()
            parts = described.setdefault("components", {}).setdefault("schemas", {})
            parts["Problem"] = problems.Problem.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                parts.pop(unused, None)
            for path in described["paths"].values():
                for call in path.values():
                    _use_problems(call)
        return super().openapi()


def _use_problems(call: dict[str, Any]) -> None:
    """Validation errors are problem documents too."""
    if "422" in call["responses"]:
        call["responses"]["422"] = problems.documented("invalid")[422]
