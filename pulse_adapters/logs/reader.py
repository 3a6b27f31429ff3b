"""Runs the log reader's child: restarts it at the stored positions when it has died."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from pulse_adapters.workers.environment import ROOT, python_environment
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.messages import Limits, decode
from pulse_adapters.workers.users import expand_home
from pulse_adapters.workers.worker import Program, Worker, module_program
from pulse_core.model.backoff import Backoff
from pulse_core.ports.logs import LogBatch, Place, ReadProgress
from pulse_core.ports.loops import wait_within
from pulse_core.settings.logs import LogSettings

BACKOFF = Backoff(0.5, 300.0)
SILENCE = 60.0
"""Seconds without a word after which the child is taken for stuck; it says something every fifteen."""
LIMITS = Limits(size=64 * 1024 * 1024)
"""A message holds the lines of one read of 256 KiB for each rule that they match."""
_RE2 = find_spec("re2")
_PATHS = (ROOT, *(str(Path(one).parent) for one in (_RE2 and _RE2.submodule_search_locations) or ()))


def program() -> Program:
    """The child's program. `-S` spares it the machinery of packages; it then has Python's library, Pulse, and re2."""
    env = {**python_environment(), "PYTHONPATH": os.pathsep.join(_PATHS)}
    return module_program("pulse_adapters.logs.tail", options=("-S", "-P"), env=env)._replace(limits=LIMITS)


class FollowedLogs:
    """Implements `LogFollower` for files and journald, with one child process; none while there is nothing to follow.

    failed: called with (source, message) for problems that the user should see; journalctl: the program for units.
    """

    def __init__(
        self,
        failed: Callable[[str, str], None],
        journalctl: Sequence[str] = ("journalctl",),
    ) -> None:
        self._failed, self._journalctl = failed, tuple(journalctl)
        self._news: Callable[[], None] = lambda: None
        self._heard: list[LogBatch | ReadProgress] = []
        self._logs: tuple[LogSettings, ...] = ()
        self._places: dict[str, Place] = {}
        self._known: set[str] = set()
        self._unrecorded, self._of_earlier_child = Counter[str](), Counter[str]()
        self._child: Worker | None = None
        self._lives: list[Worker] = []
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._standing = asyncio.Event()

    @property
    def running(self) -> frozenset[int]:
        """The pid of the child, which is its session's id too; `journalctl` runs in the same session."""
        return frozenset({self._child.pid} if self._child else ())

    def listen(self, news: Callable[[], None]) -> None:
        """Set the callback for new messages."""
        self._news = news

    def follow(
        self, logs: Sequence[LogSettings], places: Mapping[str, Place], known: Collection[str]
    ) -> None:
        """Follow exactly these from now on, each source from its position."""
        self._give_up()
        self._unrecorded -= Counter(one.source for one in self._heard if isinstance(one, LogBatch))
        self._heard.clear()
        self._logs, self._places = tuple(logs), dict(places)
        self._known = {expand_home(one) for one in known}
        self._failures = 0
        self._standing.clear()
        if logs:
            self._start()

    async def standing(self, seconds: float) -> None:
        """Wait until it has scanned, so that whatever is written from now on is reported; or until the timeout."""
        await wait_within(self._standing, seconds)

    def take(self) -> Sequence[LogBatch | ReadProgress]:
        """Take the messages received since the last call, in their order."""
        heard, self._heard = self._heard, []
        return heard

    def recorded(self, sources: Sequence[str]) -> None:
        """Let the child send as many more messages with lines as it has sent of these: an earlier one sent its own first."""
        self._unrecorded -= Counter(sources)
        earlier, own = self._of_earlier_child, list[str]()
        for source in sources:
            if earlier[source]:
                earlier[source] -= 1
            else:
                own.append(source)
        if own and self._child:
            self._child.send({"recorded": own})

    # The child

    def _start(self) -> None:
        self._of_earlier_child = self._unrecorded.copy()
        try:
            child = self._child = Worker(program(), self._on_message, lambda: self._on_disconnect(child))
        except OSError as error:
            self._restart_later(f"cannot be started: {error.strerror}")
            return
        self._lives = [*(one for one in self._lives if not one.has_ended), child]
        paths = [log.path and expand_home(log.path) for log in self._logs]
        logs = [{**log.model_dump(), "path": path} for log, path in zip(self._logs, paths, strict=True)]
        known, journalctl = list(self._known), self._journalctl
        child.send({"logs": logs, "places": self._places, "patterns": known, "journalctl": journalctl})
        self._reset_timeout()

    def _on_disconnect(self, child: Worker) -> None:
        if self._child is child:
            child.dead.add_done_callback(lambda _: self._on_exit(child))

    def _on_exit(self, child: Worker) -> None:
        if self._child is child:
            how = f"said {child.fault}" if child.fault else child.end()
            words = child.last_words()
            self._restart_later(f"{how} and is begun again{f': {words}' if words else ''}")

    def _on_message(self, message: Message) -> None:
        if "error" in message:
            whose, words = decode(tuple[str, str], message["error"])
            self._failed(f"log:{whose}", words)
        elif "hits" in message:
            batch = decode(LogBatch, message)
            self._places[batch.source] = batch.place
            self._unrecorded[batch.source] += 1
            self._heard.append(batch)
        else:
            progress = decode(ReadProgress, message)
            self._places.update(progress.places)
            for name in self._places.keys() - set(progress.sources):
                del self._places[name]
            self._known.update(expand_home(log.path) for log in self._logs if log.path)
            self._failures = 0
            self._standing.set()
            self._heard.append(progress)
        self._reset_timeout()
        if self._heard:
            self._news()

    def _reset_timeout(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SILENCE, self._on_silence)

    def _on_silence(self) -> None:
        if self._child:
            self._child.kill()
            self._restart_later(f"said nothing for {SILENCE:g} s and is begun again")

    def _restart_later(self, words: str) -> None:
        """Report what was wrong, and restart after a growing pause."""
        self._give_up()
        self._failed("log-reader", words)
        self._failures += 1
        self._timer = asyncio.get_running_loop().call_later(BACKOFF.after(self._failures), self._start)

    def _give_up(self) -> None:
        """Kill the child, and wait for nothing: a dead file system may hold it. Its complete messages are kept, and another
        one resumes after them."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        child, self._child = self._child, None
        if child:
            child.dismiss()

    def close(self) -> None:
        """End all children."""
        self._give_up()
        for child in self._lives:
            child.end_now()
