"""What is counted, in Prometheus' text format. Labels are routes, kinds and outcomes: never a tenant, user or id."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LATENCIES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """One registry of its own, so that two gateways in one process do not add up."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "docmill_http_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "docmill_http_request_seconds",
            "Seconds from a request's first byte to its answer's last.",
            ("method", "route"),
            buckets=_LATENCIES_S,
            registry=self._registry,
        )
        self.in_progress = Gauge("docmill_http_requests_in_progress", "Requests under way.", registry=self._registry)
        self.files = Counter("docmill_files_stored", "Files stored.", ("ingest", "priority"), registry=self._registry)
        self.file_bytes = Counter("docmill_file_bytes", "Bytes of stored files.", registry=self._registry)
        self.ingestions = Counter(
            "docmill_ingestions_asked", "Ingestions asked for, by what asked.", ("origin",), registry=self._registry
        )
        self.searches = Counter(
            "docmill_searches", "Searches answered, by what they found.", ("mode", "outcome"), registry=self._registry
        )
        self.deletions = Counter("docmill_deletions_asked", "Deletions asked for.", ("kind",), registry=self._registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request under its route's template."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


MEDIA_TYPE = CONTENT_TYPE_LATEST
