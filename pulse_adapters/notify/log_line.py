"""The executor `notify` as one line in the daemon's log."""

import logging

from pydantic import BaseModel, ConfigDict, Field

from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports import Policy, Result, Safety


class NoticeParams(BaseModel):
    """What to say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1, max_length=500, description="the notice in a few words")
    text: str = Field("", max_length=10_000, description="what is wrong, what was tried, what comes next")


class Notify:
    """Writes each notice as one warning, line breaks folded, so that it can't pass for two."""

    action = "notify"
    params = NoticeParams

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("pulse.notice")

    def policy(self, params: NoticeParams) -> Policy:
        """Rather twice than never."""
        return Policy(Safety.IDEMPOTENT, timeout=5.0)

    def check(self, params: NoticeParams) -> None:
        """Everything may be said."""

    async def execute(self, effect: Effect, params: NoticeParams, event: Event) -> Result:
        """Say it."""
        words = ": ".join(part for part in (params.title, params.text) if part)
        self._logger.warning("%s", " ".join(words.split()))
        return Result()

    async def verify(self, effect: Effect, params: NoticeParams, event: Event) -> Result | None:
        """Never asked: it is said again."""
        return None
