"""Writes the head of a home's log down outside of it, where the settings say."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from pulse_adapters.anchor.places import JOURNAL_PLACE, add_to_file, add_to_journal, journal_query, reach_file
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.notify.addresses import resolve_url
from pulse_adapters.notify.executor import ChildTransport
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.daemon import CurrentSettings
from pulse_core.daemon.anchor_writer import Place, record_places, write_anchors
from pulse_core.daemon.services import Changed, Failed
from pulse_core.home import HomeLayout
from pulse_core.model.anchor import Anchor
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.clock import Clock
from pulse_core.ports.transport import OutgoingMessage
from pulse_core.settings.telemetry import AnchorSettings

COMMAND_TIMEOUT = 60.0
SLACK = 60.0
"""Seconds by which the clock may have been set back."""
LOST = (
    "it lacks the line before: journald drops what processes of the daemon's unit, those of an engine too, write above "
    "RateLimitBurst= of journald.conf(5), or it stores nothing; see: journalctl -u systemd-journald; name a file, too"
)


class JournalAnchor:
    """Writes lines to the journal, and looks with each whether the one before is there.

    journald says to nobody who writes that it drops what it gets.
    """

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._last: tuple[str, float] | None = None
        """The line before, and when it was written, in seconds."""

    async def __call__(self, line: str) -> None:
        """Write a line. Raises PulseError if it is not written, or the one before is lost."""
        before, self._last = self._last, (line, time.time())
        await asyncio.to_thread(add_to_journal, line)
        if before and await self._is_lost(*before):
            raise PulseError(LOST)

    async def _is_lost(self, line: str, at: float) -> bool:
        argv = ("journalctl", f"--since=@{at - SLACK:.0f}", *journal_query({os.geteuid()}))
        try:
            asked = await self._spawner.run(argv, cwd=None, timeout=COMMAND_TIMEOUT, marker="anchor")
        except (PulseError, OSError):
            return False  # it can't be read
        return not asked.exit and line not in asked.output


def anchoring(
    home: HomeLayout,
    log: SqliteEventLog,
    clock: Clock,
    spawner: Spawner,
    settings: CurrentSettings,
    failed: Failed,
    changed: Changed,
    recorded: Callable[[], Collection[str]],
    append: Callable[[Draft], Awaitable[object]],
    mended: Callable[[], None],
) -> Callable[[AnchorSettings], Awaitable[None]]:
    """What writes the log's head down for ever, as these settings say. recorded: where, as the log says; mended: called
    when it is written again where it could not be."""
    reached, files = FileThreads(), FileThreads(is_needed=lambda: True, in_child=False)
    begun, written = set[str](), dict[str, str]()

    def newest() -> Anchor:
        return Anchor(log.host, str(home.path), log.head, clock.now().at)

    async def command(wanted: AnchorSettings, line: str) -> None:
        done = await spawner.run(
            wanted.command, cwd=None, env={"PULSE_ANCHOR": line}, timeout=COMMAND_TIMEOUT, marker="anchor"
        )
        if done.exit:
            raise PulseError(
                f"{wanted.command[0]} ended with status {done.exit}: {done.output.strip()[-200:]}"
            )

    async def notice(line: str) -> None:
        urls = [url for name in settings().notice_urls if (url := resolve_url(name))]
        if not urls:
            raise PulseError("[notify] urls has no address that it could go to")
        told = [OutgoingMessage(url, "The head of the log", line, tone="info") for url in urls]
        if wrong := [why for why in await ChildTransport().deliver(told) if why]:
            raise PulseError(f"it was not delivered: {wrong[0]}")

    async def to_file(name: str, path: Callable[[], Path], line: str) -> bool:
        await reached.ask(name, partial(reach_file, path))

        def add() -> str:
            if add_to_file(path(), line, written.get(name, "")):
                begun.add(name)  # nobody may wait for the answer any more
            written[name] = line
            return line

        if await files.ask(name, add) != line:
            raise PulseError("only an earlier head is written by now")
        is_first = name in begun
        begun.discard(name)
        return is_first

    journal = JournalAnchor(spawner)

    def places(wanted: AnchorSettings) -> Mapping[str, Place]:
        found: dict[str, Place] = {}
        if wanted.file:
            path = outside(home, Path(wanted.file))
            found[wanted.file] = partial(to_file, wanted.file, path)
        if wanted.journal:
            found["the journal"] = journal
        if wanted.command:
            found["the command"] = lambda line: command(wanted, line)
        if wanted.notice:
            found["the notice"] = notice
        return found

    async def work(wanted: AnchorSettings) -> None:
        while True:
            try:
                await record_places(readable_places(wanted), recorded(), append, changed)
                break
            except PulseError as error:
                failed("anchor", str(error))
                await asyncio.sleep(wanted.every / US_PER_SECOND)
        await write_anchors(newest, places(wanted), wanted.every, failed, changed, mended)

    return work


def readable_places(wanted: AnchorSettings) -> list[str]:
    """Where the settings have the head written that it can be read again: a path, the journal."""
    return [place for place in (wanted.file, JOURNAL_PLACE if wanted.journal else "") if place]


def outside(home: HomeLayout, path: Path) -> Callable[[], Path]:
    """The path; raises PulseError if it leads into the home, with which it would be forged."""

    def checked() -> Path:
        if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(home.path)):
            raise PulseError(f"{path} lies in the home that it is to vouch for; put it elsewhere")
        return path

    return checked
