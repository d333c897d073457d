"""``/docs``: the calls as one plain page from the OpenAPI description. No script, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)
_REFERENCE = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    kind: str
    note: str


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Call:
    verb: str
    path: str
    anchor: str
    paragraphs: tuple[str, ...]
    tables: tuple[Table, ...]
    answers: tuple[Answer, ...]


@router.get("/docs", response_class=HTMLResponse)
def page(request: Request) -> HTMLResponse:
    """Every call with its parameters, body, answer and errors."""
    return HTMLResponse(render(request.app.openapi()))


def render(described: Mapping[str, Any]) -> str:
    """An OpenAPI description as HTML; everything in it is escaped."""
    templates = Environment(
        loader=PackageLoader("pipeline.entrypoints.gateway", "templates"), autoescape=True, undefined=StrictUndefined
    )
    info = described["info"]
    return templates.get_template("docs.html").render(
        title=info["title"],
        version=info["version"],
        description=info.get("description", ""),
        calls=list(calls(described)),
    )


def calls(described: Mapping[str, Any]) -> Iterator[Call]:
    """The calls of a description in its own order."""
    shapes = described.get("components", {}).get("schemas", {})
    for path, verbs in described["paths"].items():
        for verb, call in verbs.items():
            yield Call(
                verb=verb.upper(),
                path=path,
                anchor=call["operationId"],
                paragraphs=tuple(call.get("description", "").replace("``", "").split("\n\n")),
                tables=tuple(_tables(call, shapes)),
                answers=tuple(
                    Answer(status, answer.get("description", "")) for status, answer in call["responses"].items()
                ),
            )


def _tables(call: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[Table]:
    if parameters := call.get("parameters"):
        rows = tuple(
            Row(one["name"], f"{one['in']}, {_kind(one['schema'])}", one.get("description", "")) for one in parameters
        )
        yield Table("Parameters", rows)
    for content in call.get("requestBody", {}).get("content", {}).values():
        yield from _fields("Body", content.get("schema", {}), shapes)
    for status, answer in call["responses"].items():
        if status.startswith("2"):
            for content in answer.get("content", {}).values():
                yield from _fields(f"Answer {status}", content.get("schema", {}), shapes)


def _fields(caption: str, schema: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[Table]:
    """One table a shape: a union has several."""
    for part in schema.get("anyOf", [schema]):
        shape = shapes.get(part.get("$ref", "").removeprefix(_REFERENCE), part)
        wanted = set(shape.get("required", ()))
        rows = tuple(
            Row(name, _kind(field) + ("" if name in wanted else ", optional"), field.get("description", ""))
            for name, field in shape.get("properties", {}).items()
        )
        if rows:
            yield Table(
                f"{caption}: {str(shape['title']).removesuffix('Shape')}" if "title" in shape else caption, rows
            )


def _kind(schema: Mapping[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REFERENCE).removesuffix("Shape")
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")
