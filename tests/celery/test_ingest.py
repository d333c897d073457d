"""Documents through real workers: every stage, a refused document, a repeated message, a lost broker."""

from __future__ import annotations

from tests.deployment import Deployment

HANDBOOK = b"""# Handbook

## Torque

The spindle bolt is tightened to 42 newton metres.

## Errors

ERR-4021 means the coolant is low. ERR-4022 means the door is open.
"""


def test_a_document_becomes_searchable(deployment: Deployment) -> None:
    deployment.start_worker()
    deployment.start_beat()
    principal = deployment.principal()
    source_id = deployment.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    (source,) = deployment.wait_ended(principal, [source_id])
    assert source.status == "ready", source.latest
    assert source.chunks == 2
    deployment.check_guarantees(principal.tenant_id)
