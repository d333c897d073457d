"""One thin task per stage: parse the message, call one service, let the chain go on or stop."""

from __future__ import annotations

from typing import Any

from pipeline import flow
from pipeline.flow import Stage
from tasks.app import app
from tasks.base import StageTask

# A task is warned this long before it is ended.
SOFT_MARGIN_S = 15


def _limits(stage: Stage) -> dict[str, Any]:
    hard = flow.spec(stage).hard_limit_s
    return {"base": StageTask, "bind": True, "time_limit": hard, "soft_time_limit": hard - SOFT_MARGIN_S}


@app.task(name=flow.spec(Stage.REGISTER).task_name, **_limits(Stage.REGISTER))
def register(self: StageTask, **message: Any) -> None:
    self.execute(Stage.REGISTER, message)


@app.task(name=flow.spec(Stage.EXTRACT).task_name, **_limits(Stage.EXTRACT))
def extract(self: StageTask, **message: Any) -> None:
    self.execute(Stage.EXTRACT, message)


@app.task(name=flow.spec(Stage.OCR).task_name, **_limits(Stage.OCR))
def ocr(self: StageTask, **message: Any) -> None:
    self.execute(Stage.OCR, message)


@app.task(name=flow.spec(Stage.CHUNK).task_name, **_limits(Stage.CHUNK))
def chunk(self: StageTask, **message: Any) -> None:
    self.execute(Stage.CHUNK, message)


@app.task(name=flow.spec(Stage.EMBED).task_name, **_limits(Stage.EMBED))
def embed(self: StageTask, **message: Any) -> None:
    self.execute(Stage.EMBED, message)


@app.task(name=flow.spec(Stage.KEYWORDS).task_name, **_limits(Stage.KEYWORDS))
def keywords(self: StageTask, **message: Any) -> None:
    self.execute(Stage.KEYWORDS, message)


@app.task(name=flow.spec(Stage.PUBLISH).task_name, **_limits(Stage.PUBLISH))
def publish(self: StageTask, **message: Any) -> None:
    self.execute(Stage.PUBLISH, message)
