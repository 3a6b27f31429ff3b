"""The watcher of checks: each looks at its own pace, and none waits for another."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.capability import WatcherContext
from pulse_core.checks.conclusions import (
    KEY,
    PREFIX,
    CheckHistory,
    Look,
    conclude,
    excuse_for,
    is_bad,
    is_outdated,
    is_overdue,
    last_mended,
    name_of,
    well_by_new_bound,
)
from pulse_core.checks.outcomes import (
    CheckOutcome,
    FileStatus,
    of_command,
    of_file,
    of_lines,
    of_page,
    of_vital,
    senses_of,
)
from pulse_core.checks.settings import CHECKS, TELL, CheckSettings
from pulse_core.model.errors import describe_error
from pulse_core.model.event import Draft, Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared, LogMatched, SettingsLoaded
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.text import count
from pulse_core.model.urls import is_here
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.commands import CommandRequest
from pulse_core.ports.prober import ProbeRequest
from pulse_core.projections.gauges import Streak

LARGEST_BODY = 64 * 1024
IDLE_S, LONGEST_WAIT_S = 3_600.0, 5.0
SOON_S = 0.05
TOGETHER_S = 0.2
"""Seconds within which looks that end one after the other are told by one sample."""
HEARD_S = 1.0
"""Seconds after a matching line until it is counted, with all that come meanwhile."""
SLACK = 20
"""A check looks together with another one that is due by this part of its pause earlier."""

AskFile = Callable[[str], Awaitable[FileStatus | None]]
"""Asks the status of the file at a path: None if it is not there. Raises OSError, also if no file system answers."""


@dataclass
class CheckState:
    """What is known of one check: when its last look began (loop time, and the moment), what that will find if it is under
    way, what the one before has found, whether that was bad, and the history.

    rebound: what was found when it was well again, if it is so only since its bound was changed; else empty.
    """

    check: CheckSettings
    put: float | None = None
    began: Moment | None = None
    coming: "asyncio.Task[CheckOutcome] | None" = None
    newest: CheckOutcome | None = None
    seen: Moment | None = None
    bad: bool | None = None
    rebound: str = ""
    history: CheckHistory = field(default_factory=CheckHistory)

    def due(self, now: float) -> float:
        """When it is to look again (loop time)."""
        return now if self.put is None else self.put + self.check.every / US_PER_SECOND


class Checks:
    """The watcher `checks`: a sample with the newest look of every check, and an event for every change of one.

    A sample has for each check: ok, what was measured (latency_ms, exit, status, age_s, size_bytes, lines, value), detail
    unless it is well, rebound (what was found, if it is well only by a changed bound), history (bad looks in a row that
    count, when the first of them began, and since when it is over its bound, and when that was last seen), proven (something
    may be done about it), excused (why it counts for nothing), overdue_us (how long ago that look was, if the next one is
    overdue).
    """

    name = key = KEY
    conditions = (PREFIX,)
    timeout = 60.0

    def __init__(self, context: WatcherContext, ask_file: AskFile) -> None:
        self._context, self._ask_file = context, ask_file
        self.nudge = asyncio.Event()
        self._of: dict[str, CheckState] = {}
        self._settings: tuple[CheckSettings, ...] | None = None
        self._hearing: asyncio.TimerHandle | None = None
        context.listen(self._on_events)

    @property
    def interval(self) -> float:
        """Seconds until there is something to do."""
        if any(one.coming for one in self._of.values()):
            return SOON_S
        return max(SOON_S, self._left()) if self._of else IDLE_S

    def _left(self) -> float:
        """Seconds until the next check that is not looking just now is to look."""
        now = asyncio.get_running_loop().time()
        due = (one.due(now) for one in self._of.values() if one.coming is None)
        return max(0.0, min(due, default=now + IDLE_S) - now)

    def should_wake(self, window: Window) -> bool:
        """Whether something may have to be done about a check whose condition stands already."""
        newest = window.last.data if window.last else {}
        return any(one.get("proven") for one in newest.values())

    def _on_events(self, events: Sequence[Event]) -> None:
        kinds = {event.kind for event in events}
        if SettingsLoaded.kind in kinds:
            self.nudge.set()
        if LogMatched.kind in kinds and self._hearing is None:
            self._hearing = asyncio.get_running_loop().call_later(HEARD_S, self._look_at_lines)

    def _look_at_lines(self) -> None:
        self._hearing = None
        for one in self._of.values():
            if one.check.log:
                one.put = None
                self.nudge.set()

    async def collect(self) -> Reading:
        """Begin the looks that are due, and take what others have found."""
        drafts = [*self._match_settings()]
        await self._begin()
        if coming := [one.coming for one in self._of.values() if one.coming]:
            longest = min(self._left(), LONGEST_WAIT_S)
            done, left = await asyncio.wait(coming, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
            if done and left:
                await asyncio.wait(left, timeout=TOGETHER_S)
        for one in self._of.values():
            drafts += self._taken(one)
        return Reading({name: self._data(one) for name, one in self._of.items() if one.newest}, tuple(drafts))

    def _match_settings(self) -> Iterator[Draft]:
        """Match what is known to the settings, at the start with the history that an earlier daemon left in its last sample;
        yields the ends of conditions of those that are not checked any more."""
        wanted, state = CHECKS.of(self._context.settings()), self._context.state()
        if wanted != self._settings:
            known, last = self._of, self._context.window(KEY).last
            said = last.data if last and self._settings is None else {}
            made = {
                check.name: CheckState(check, history=earlier(said.get(check.name, {}))) for check in wanted
            }
            same = {
                name: one for name, one in known.items() if name in made and one.check == made[name].check
            }
            self._of, self._settings = {**made, **same}, wanted
            for name in known.keys() - same.keys():
                if task := known[name].coming:
                    task.cancel()
        for name in state.conditions.raised:
            if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in self._of:
                cleared = ConditionCleared(evidence="it is not checked any more", unwatched=True)
                yield Draft(cleared, subject=name)

    async def _begin(self) -> None:
        now = asyncio.get_running_loop().time()
        for one in [*self._of.values()]:
            early = one.check.every / US_PER_SECOND / SLACK
            if one.coming is None and one.due(now) - early <= now:
                one.put, one.began = now, self._context.clock.now()
                one.coming = asyncio.create_task(self._look(one.check), name=f"check {one.check.name}")
                await asyncio.sleep(0)  # many begin at once, and others have their turn in between

    async def _look(self, check: CheckSettings) -> CheckOutcome:
        try:
            return await self._found(check)
        except Exception as error:  # noqa: BLE001 - what is wrong with a look says nothing of what is looked at
            return CheckOutcome(None, f"nobody can look: {describe_error(error)}")

    async def _found(self, check: CheckSettings) -> CheckOutcome:
        context = self._context
        if check.command:
            return of_command(
                await context.commands.ask(CommandRequest(name_of(check), check.command, check.timeout))
            )
        if url := check.http:
            body, local = check.http_body or "", is_here(url)
            request = ProbeRequest("http", url, check.timeout, local=local, largest=LARGEST_BODY, body=body)
            return of_page(check, await context.prober.ask(request))
        if check.file:
            return of_file(check, await self._ask_file(check.file), context.clock.now())
        now = context.clock.now()
        if check.log:
            state = context.state()
            return of_lines(check, state.logs, now, last_mended(check, state, now))
        return of_vital(check, ((sense, context.window(sense)) for sense in senses_of(check)))

    def _taken(self, one: CheckState) -> tuple[Draft, ...]:
        """What follows from a look that has ended; nothing of one that has not."""
        if one.coming is None or one.began is None or not one.coming.done():
            return ()
        found, one.coming = one.coming.result(), None
        context, check = self._context, one.check
        state, now = context.state(), context.clock.now()
        excuse = excuse_for(check, state, now)
        if not excuse and is_outdated(one.began, check, state, now):
            excuse = "something was only just done about it"
        one.newest, one.seen, one.bad = found, now, is_bad(check, found, state.conditions)
        if one.bad is not None:
            one.rebound = "" if one.bad else well_by_new_bound(check, found, state.conditions) or one.rebound
        look = Look(check, found, one.began, self._counted(one), state.conditions, now, excuse)
        drafts, one.history = conclude(look)
        return drafts

    def _counted(self, one: CheckState) -> CheckHistory:
        """The part of its history that counts: nothing from before something was last done about it."""
        first, state, now = one.history.first, self._context.state(), self._context.clock.now()
        is_old = first is not None and is_outdated(first, one.check, state, now)
        return CheckHistory(unknown=one.history.unknown) if is_old else one.history

    def _data(self, one: CheckState) -> Mapping[str, Json]:
        found, history, context = one.newest, self._counted(one), self._context
        assert found is not None
        assert one.seen is not None
        age = context.clock.now().since(one.seen)
        excuse = excuse_for(one.check, context.state(), context.clock.now())
        is_proven = one.check.then != TELL and history.bad >= one.check.needed and not excuse
        return {
            **({} if one.bad is None else {"ok": not one.bad}),
            **found.numbers,
            **({} if one.bad is False else {"detail": found.words}),
            **({"rebound": one.rebound} if one.rebound else {}),
            **({"history": [history.bad, history.first, history.streak]} if history.first else {}),
            **({"proven": count(history.bad, "look")} if is_proven else {}),
            **({"excused": excuse} if excuse else {}),
            **({"overdue_us": age} if is_overdue(age, one.check) else {}),
        }


def earlier(said: Mapping[str, Json]) -> CheckHistory:
    """The history that a sample holds."""
    if "history" not in said:
        return CheckHistory()
    bad, first, streak = said["history"]
    over = Streak(Moment(*streak[0]), Moment(*streak[1])) if streak else None
    return CheckHistory(bad, Moment(*first), streak=over)
