"""A plugin with one watcher and one executor."""

import asyncio
from typing import Any

from pydantic import BaseModel

from pulse_core import Effect, Event, Plugin, Policy, Reading, Result, Safety, Window


class Sample:
    """Senses nothing."""

    name = key = "sample"
    interval, timeout = 60.0, 5.0

    def __init__(self) -> None:
        self.nudge = asyncio.Event()

    async def collect(self) -> Reading:
        """A sample of nothing."""
        return Reading({"sample": True})

    def should_wake(self, window: Window) -> bool:
        """Never."""
        return False


class Params(BaseModel):
    """None."""


class Act:
    """Fails."""

    action, params = "sample", Params

    def policy(self, params: Any) -> Policy:
        """Never again."""
        return Policy(Safety.AT_MOST_ONCE)

    def check(self, params: Any) -> None:
        """Nothing."""

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        """Fail."""
        raise ValueError("no")

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        """Nobody knows."""
        return None


PLUGIN = Plugin("sample", watchers=(Sample(),), executors=(Act(),))
