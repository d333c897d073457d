"""The page of calls shows what a description says, and only as text."""

from __future__ import annotations

from pipeline.entrypoints.gateway.docs import render


def test_whatever_a_description_says_is_text() -> None:
    page = render(
        {
            "info": {"title": "<b>T</b>", "version": "1", "description": "<script>alert(1)</script>"},
            "paths": {
                "/x": {
                    "get": {
                        "operationId": "x",
                        "description": "First.\n\nSecond <i>.",
                        "parameters": [
                            {"name": "n", "in": "query", "schema": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
                        ],
                        "responses": {
                            "200": {
                                "description": "Fine",
                                "content": {
                                    "application/json": {"schema": {"$ref": "#/components/schemas/ThingShape"}}
                                },
                            }
                        },
                    }
                }
            },
            "components": {
                "schemas": {
                    "ThingShape": {
                        "title": "ThingShape",
                        "required": ["a"],
                        "properties": {"a": {"type": "array", "items": {"enum": ["p", "q"]}}, "b": {"format": "uuid"}},
                    }
                }
            },
        }
    )
    assert "<script" not in page
    assert "<b>T" not in page
    assert "<p>Second &lt;i&gt;.</p>" in page
    assert "query, integer or null" in page
    assert "Answer 200: Thing" in page
    assert "list of p | q</td>" in page
    assert "uuid, optional</td>" in page
