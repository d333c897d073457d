"""The workers' application with a broken broker: every task message is delivered twice, at once."""

from __future__ import annotations

from typing import Any

from celery import signals

from tasks.app import app

_COPY = "docmill-copy"


@signals.after_task_publish.connect
def deliver_again(
    headers: dict[str, Any] | None = None, body: Any = None, exchange: str = "", routing_key: str = "", **_: Any
) -> None:
    if headers is None or headers.get(_COPY):
        return
    with app.producer_pool.acquire(block=True) as producer:
        producer.publish(
            body,
            exchange=exchange,
            routing_key=routing_key,
            serializer="json",
            headers={**headers, _COPY: True},
            correlation_id=headers["id"],
        )


__all__ = ["app"]
