"""What operators and orchestrators ask: liveness, readiness, metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from pipeline.entrypoints.gateway import metrics
from pipeline.entrypoints.gateway.calls import Counters, Services

router = APIRouter(tags=["operations"])


class HealthShape(BaseModel):
    status: str = "ok"


class ReadinessShape(BaseModel):
    """``dependencies`` by name: ``ok``, or what is wrong."""

    status: str
    dependencies: dict[str, str]


@router.get("/healthz", response_model=HealthShape)
async def healthz() -> Any:
    """The process is alive and answers."""
    return HealthShape()


@router.get(
    "/readyz",
    response_model=ReadinessShape,
    responses={503: {"description": "A dependency is down.", "model": ReadinessShape}},
)
async def readyz(services: Services) -> JSONResponse:
    """Each dependency, named; 503 when one is down."""
    troubles = await run_in_threadpool(services.readiness.troubles)
    ready = not any(troubles.values())
    shape = ReadinessShape(
        status="ok" if ready else "unavailable",
        dependencies={name: trouble or "ok" for name, trouble in troubles.items()},
    )
    return JSONResponse(shape.model_dump(), 200 if ready else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def exposition(counters: Counters) -> Response:
    """Prometheus' text format."""
    return Response(counters.exposition(), headers={"Content-Type": metrics.MEDIA_TYPE})
