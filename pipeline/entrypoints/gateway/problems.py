"""Errors as RFC 9457 problem documents with a closed ``code``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from pipeline.errors import RequestError, SourceGone, StaleEmbeddingSet, TransientError

MEDIA_TYPE = "application/problem+json"
_RETRY_AFTER_S = 2
_STATUS: Mapping[str, HTTPStatus] = {
    "not_found": HTTPStatus.NOT_FOUND,
    "unauthenticated": HTTPStatus.UNAUTHORIZED,
    "invalid": HTTPStatus.UNPROCESSABLE_ENTITY,
    "conflict": HTTPStatus.CONFLICT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unsupported_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
}
_CODE = {int(status): code for code, status in _STATUS.items()}


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str = Field(description="One of: " + ", ".join(_STATUS))


def response(
    code: str, detail: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """A problem document; ``status`` defaults to the code's own."""
    number = int(status if status is not None else _STATUS[code])
    problem = Problem(title=HTTPStatus(number).phrase, status=number, detail=detail, code=code)
    return JSONResponse(problem.model_dump(), number, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def documented(*codes: str) -> dict[int | str, dict[str, Any]]:
    """What FastAPI is told of the problems that a call may answer with."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {int(_STATUS[code]): {"description": code, "content": content} for code in codes}


def install(app: FastAPI) -> None:
    """Answer every error that is raised on purpose with a problem document."""
    app.add_exception_handler(RequestError, _request_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(TransientError, _transient_error)
    app.add_exception_handler(StaleEmbeddingSet, _transient_error)
    app.add_exception_handler(SourceGone, _source_gone)


def _request_error(_request: Request, error: Exception) -> JSONResponse:
    code = error.code if isinstance(error, RequestError) else RequestError.code
    headers = {"WWW-Authenticate": "Bearer"} if code == "unauthenticated" else {}
    return response(code, _sentence(str(error)), headers=headers)


def _validation_error(_request: Request, error: Exception) -> JSONResponse:
    """Names what is wrong, never what was sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else ()
    told = "; ".join(f"{_place(each['loc'])}: {each['msg']}" for each in found[:3])
    return response("invalid", _sentence(told or "the request is malformed"))


def _place(location: tuple[int | str, ...]) -> str:
    kept = [str(part)[:64] for part in location if part not in ("query", "path", "header")][:6]
    return ".".join(kept) or "request"


def _http_error(_request: Request, error: Exception) -> JSONResponse:
    """What the framework itself refuses: unknown routes, methods, unreadable bodies."""
    if not isinstance(error, HTTPException):
        raise error
    known = error.status_code in _CODE or error.status_code in HTTPStatus._value2member_map_
    status = error.status_code if known else int(HTTPStatus.BAD_REQUEST)
    if status == HTTPStatus.NOT_FOUND:
        return response("not_found", "No such resource.")
    return response(_CODE.get(status, "invalid"), _sentence(error.detail), status=status, headers=error.headers)


def _transient_error(_request: Request, error: Exception) -> JSONResponse:
    wait = error.retry_after_s if isinstance(error, TransientError) else None
    seconds = math.ceil(wait) if wait is not None and wait > 0 else _RETRY_AFTER_S
    name = error.dependency if isinstance(error, TransientError) else "index"
    return response(
        "unavailable", f"The {name} is not available now; try again shortly.", headers={"Retry-After": str(seconds)}
    )


def _source_gone(_request: Request, _error: Exception) -> JSONResponse:
    return response("conflict", "The source ended while the request ran; ask again.")


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
