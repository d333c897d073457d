"""Where a task goes."""

from __future__ import annotations

import pytest

from pipeline import flow
from pipeline.flow import Queue, Stage
from pipeline.types import Priority


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("alone", [False, True])
def test_embedding_never_leaves_its_own_instance(priority: Priority, alone: bool) -> None:
    assert flow.queue_of(Stage.EMBED, priority, unit_pages=1, alone=alone) is Queue.EMBED


def test_a_document_that_lost_its_workers_runs_on_maintenance() -> None:
    others = [spec.stage for spec in flow.FLOW if spec.stage is not Stage.EMBED]
    assert {flow.queue_of(stage, Priority.INTERACTIVE, alone=True) for stage in others} == {Queue.MAINTENANCE}


def test_people_who_wait_go_first_unless_the_unit_is_long() -> None:
    assert flow.queue_of(Stage.OCR, Priority.INTERACTIVE, unit_pages=10) is Queue.INTERACTIVE
    assert flow.queue_of(Stage.OCR, Priority.INTERACTIVE, unit_pages=11) is Queue.OCR
    assert flow.queue_of(Stage.OCR, Priority.BULK, unit_pages=1) is Queue.OCR


def test_what_is_left_of_a_chain_begins_at_its_stage() -> None:
    assert [spec.stage for spec in flow.remaining(Stage.EMBED)] == [Stage.EMBED, Stage.KEYWORDS, Stage.PUBLISH]
    assert flow.predecessor(Stage.REGISTER) is None
    assert flow.successor(Stage.PUBLISH) is None
