"""A real reader with its process, and everything that it says."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from pulse_adapters.logs.reader import FollowedLogs
from pulse_core.ports.logs import LogBatch, Place, ReadProgress
from pulse_core.settings.logs import LogSettings


class Ear:
    """Follows logs in a real child; heard: (source, line) in their order; places: the latest of each source."""

    def __init__(self, *logs: LogSettings, journalctl: tuple[str, ...] = ("journalctl",)) -> None:
        self.logs = logs
        self.said: list[tuple[str, str]] = []
        self.messages: list[LogBatch] = []
        self.heard: list[tuple[str, str]] = []
        self.counted = 0
        self.progress = ReadProgress((), {})
        self.places: dict[str, Place] = {}
        self.reader = FollowedLogs(lambda whose, words: self.said.append((whose, words)), journalctl)
        self.reader.listen(self._news)

    async def __aenter__(self) -> "Ear":
        await self.follow()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reader.close()

    async def follow(self, *logs: LogSettings) -> None:
        """Follow, as if the settings had been read again; returns when the reader is at work."""
        self.logs = logs or self.logs
        known = {log.path for log in self.logs if log.path} if self.places else set()
        self.progress = ReadProgress((), {})
        self.reader.follow(self.logs, self.places, known)
        await self.until(lambda: self.progress is not ReadProgress((), {}) and self.began)

    began = False

    def _news(self) -> None:
        for message in self.reader.take():
            if isinstance(message, ReadProgress):
                self.progress, self.began = message, True
                self.places |= message.places
                continue
            self.messages.append(message)
            self.reader.recorded([message.source])
            self.places[message.source] = message.place
            for hits in message.hits:
                self.heard += [(message.source, line) for line in hits.lines]
                self.counted += hits.number

    @property
    def lines(self) -> list[str]:
        return [line for _, line in self.heard]

    @property
    def pid(self) -> int:
        """The child's."""
        return min(self.reader.running, default=0)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    async def until(self, holds: Callable[[], Any], seconds: float = 60.0) -> None:
        """Wait for what real processes do in their own time."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, (
                f"it did not happen; heard {len(self.heard)}, said {self.said}"
            )
            await asyncio.sleep(0.005)


def errors(path: str | Path, **more: Any) -> LogSettings:
    """Follow this for ERROR."""
    return LogSettings(path=str(path), keywords=("ERROR",), **more)
