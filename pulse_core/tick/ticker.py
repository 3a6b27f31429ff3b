"""The tick loop: wait, take a snapshot, fold it, record the result."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pulse_core.actions import BLAST_RADIUS
from pulse_core.composition import FOLD, set_aside
from pulse_core.model.errors import PulseError, describe_error
from pulse_core.model.event import Event, Head
from pulse_core.model.histogram import DurationHistogram
from pulse_core.model.json_types import Json
from pulse_core.model.payload import KINDS, Role, Wake
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.token_bucket import TokenBucket
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.model.vitals import Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.loops import Supervise, join_in_slices, unsupervised, wait_within
from pulse_core.ports.stores import Objects, Vitals
from pulse_core.projections.state import CurrentState, Snapshot, encode_in_pieces
from pulse_core.record.journal import PATIENCE
from pulse_core.settings.settings import Settings
from pulse_core.tick.rule_folds import FoldOutcome, RuleFolds

SNAPSHOT_BURST, SNAPSHOT_BYTES_A_SECOND = 512 * 1024 * 1024, 16 * 1024
"""What the snapshots of ticks that act may take of the disk at once, and in the long run: less than 2 GiB a day."""
MOST_UNSTORED = 10
"""Ticks whose snapshots may wait for a slow disk; of others only the record is stored."""
ASKED_AT_ONCE, ASKED_A_SECOND = 10, 10
"""Ticks for which those outside of the daemon may hurry it, at once and in the long run; the others come after the gap."""


class Waker:
    """Collects reasons for a tick: an urgent one ends the wait at once, others after the least gap."""

    def __init__(self) -> None:
        self._asked = TokenBucket(ASKED_AT_ONCE, ASKED_A_SECOND)
        self._reasons: dict[str, None] = {}
        self._soon = asyncio.Event()
        self._now = asyncio.Event()
        self._ping = False

    def __call__(self, reason: str, urgent: bool = True) -> None:
        """Request a tick."""
        self._reasons[reason] = None
        self._soon.set()
        if urgent:
            self._now.set()

    def ask(self, reason: str) -> None:
        """Request a tick for others than the daemon itself, of which only so many are urgent."""
        self(reason, urgent=self._may_hurry(Role.AGENT))

    def ping(self) -> None:
        """Make the loop turn once without a tick, to show that it lives."""
        self._ping = True
        self._soon.set()
        self._now.set()

    def on_events(self, events: Sequence[Event]) -> None:
        """Wake as the recorded kinds declare; a listener of the log. Unknown kinds do not wake."""
        for name in dict.fromkeys(event.kind for event in events):
            kind = KINDS.get(name)
            if kind is not None and kind.wakes is not Wake.NEVER:
                self(name, urgent=kind.wakes is Wake.NOW and self._may_hurry(kind.by))

    def _may_hurry(self, asker: Role) -> bool:
        """Whether an event that such an asker may record is still urgent: the daemon's own always are."""
        if asker is Role.DAEMON:
            return True
        if has_room := self._asked.room(_now()) >= 1:
            self._asked.spend(1)
        return has_room

    async def wait(self, gap: float, seconds: float) -> str:
        """Why it is time for a tick, `timer` after `seconds`, or nothing after a ping.

        No sooner than `gap` seconds from now unless a reason is urgent.
        """
        over = _now() + gap
        await wait_within(self._soon, max(gap, seconds))
        if not self._now.is_set() and (gap := over - _now()) > 0:
            await wait_within(self._now, gap)
        pinged, self._ping = self._ping, False
        reasons, self._reasons = ", ".join(list(self._reasons)[:5]), {}
        self._soon.clear()
        self._now.clear()
        return reasons or ("" if pinged else "timer")


SNAPSHOT_VERSION = 2
Failed = Callable[[str, str], None]
Folded = Callable[[Snapshot, Verdict, Sequence[WithheldEffect]], None]
FoldSnapshot = Callable[[Snapshot, Snapshot], Awaitable[FoldOutcome]]


@dataclass(frozen=True, slots=True)
class Sources:
    """The inputs of a snapshot: projections, windows of samples, settings and clock."""

    current_state: CurrentState
    windows: Callable[[], Mapping[str, Window]]
    settings: Callable[[], Settings]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Stores:
    """Where ticks are stored, and the version that they bear; `kept` is called after a tick that emitted effects."""

    vitals: Vitals
    objects: Objects
    version: str
    kept: Callable[[], None] = lambda: None


class Ticker:
    """Folds a snapshot whenever a tick is due; `prev` is the one before, across restarts too.

    The whole onion is folded beside the loop, so that slow rules delay no reflex; while it
    is busy, the newest snapshot waits, and while `reflex_alone` holds, it is not folded. `last_whole` is the last
    snapshot that it has folded.
    failed(whose, message) is called for rules that raise and ticks that could not be recorded; supervise runs the loop
    of the whole onion, which the reflex must outlive; folded is called after each reflex, with what survival held back.
    """

    def __init__(
        self,
        sources: Sources,
        folding: RuleFolds,
        stores: Stores,
        failed: Failed,
        reflex_alone: Callable[[], bool] = lambda: False,
        supervise: Supervise = unsupervised,
        folded: Folded = lambda curr, verdict, withheld: None,
    ) -> None:
        self.sources, self.folding, self.stores, self.failed = sources, folding, stores, failed
        self.reflex_alone, self.supervise, self.folded = reflex_alone, supervise, folded
        self.waker = Waker()
        self.prev: Snapshot | None = None
        self.number = 0
        self.beats = 0
        self.took_us: deque[int] = deque(maxlen=1_000)
        self.durations = DurationHistogram()
        self.last_whole: Snapshot | None = None
        self._newest: dict[str, Sequence[LayerOutcome]] = {}
        self._handed: tuple[Snapshot, TickRecord, asyncio.Task[TickRecord] | None] | None = None
        self._storing: set[asyncio.Task[TickRecord]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        self._recorded = asyncio.Event()
        self._due = 0.0
        self.begun = asyncio.Event()
        self._answers: list[asyncio.Future[None]] = []
        self._stopping = False
        self._keeping: asyncio.Future[str] | None = None
        self._set_aside = set[str]()
        self._snapshot_bytes = TokenBucket(SNAPSHOT_BURST, SNAPSHOT_BYTES_A_SECOND)

    def resume(self, prev: Snapshot | None) -> None:
        """Continue from the last snapshot of an earlier daemon."""
        self.prev = self.last_whole = prev
        self.number = prev.tick if prev else 0

    @property
    def held_back(self) -> Sequence[str]:
        """What was held back in the newest folds, in the words of the rule that holds it."""
        layers = [layer for some in self._newest.values() for layer in some if layer.rule == BLAST_RADIUS]
        return tuple(dict.fromkeys(note for layer in layers for note in layer.notes))

    @property
    def raising(self) -> Mapping[str, str]:
        """The rules that raised in the newest folds, and what."""
        layers = [layer for some in self._newest.values() for layer in some if layer.outcome == "error"]
        return {layer.rule: "; ".join(layer.notes) for layer in layers}

    def stop(self) -> None:
        """Finish the tick under way and return."""
        self._stopping = True
        self.waker.ping()

    async def run(self) -> None:
        """Tick until stopped, the first time at once."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            whole = group.create_task(self._fold_wholes_for_ever(), name="whole fold")
            await self.tick("start")
            self.begun.set()
            while not self._stopping:
                gap = self.sources.settings().daemon.min_tick_ms / 1000
                reason = await self.waker.wait(gap, max(0.0, self._due - _now()))
                self.beats += 1
                if reason and not self._stopping:
                    await self.tick(reason)
            self._handed = None  # no other whole fold begins
            if self.folding.is_recording:  # else the log would have effects that no tick's record tells of
                await wait_within(self._recorded, PATIENCE)
            whole.cancel()
            _resolve(self._answers)

    async def answered(self) -> None:
        """Wait until a tick has folded the present state and its reflex is recorded; at once if the loop does not run."""
        if self.begun.is_set() and not self._stopping:
            self._answers.append(answer := asyncio.get_running_loop().create_future())
            await answer

    async def tick(self, reason: str) -> None:
        """One tick: the reflex at once, the whole onion as soon as it is free."""
        began = _now()
        curr = self._snapshot()
        answers, self._answers = self._answers, []
        if curr.state.broken:
            self._tell_set_aside(curr)
        folded = await self._fold(self.folding.reflex, self.prev or curr, curr)
        _resolve(answers)
        self.prev = curr
        if folded.emitted:
            await asyncio.sleep(0)  # what was recorded is begun before the rest, which can wait
        try:
            self.folded(curr, folded.verdict, folded.withheld)
        except Exception as error:  # noqa: BLE001 - what a rule is skipped for may fail here, too
            self.failed("tick", f"what holds its answers back is not told: {describe_error(error)}")
        self._newest["reflex"] = folded.layers
        self._due = began + self._bounded(folded.verdict.tick_ms) / 1000
        record = self._record(curr, reason, folded, began)
        self.took_us.append(record.took_us)
        self.durations.add(record.took_us)
        self.stores.vitals.record(record)
        storing = self._store_beside(record, curr) if record.effects else None
        if wait_us := self.folding.whole_due_us(curr, reason != "timer"):
            self._due = min(self._due, began + wait_us / 1e6)
        elif self.reflex_alone():
            self._newest.pop("whole", None)
        else:
            self._handed = (curr, record, storing)
            self._news.set()

    def _tell_set_aside(self, curr: Snapshot) -> None:
        """Report each capability that is set aside, once."""
        for name, why in set_aside(curr.state).items():
            if name not in self._set_aside:
                self._set_aside.add(name)
                self.failed(f"capability:{name}", f"it is set aside: {why}")

    def _snapshot(self) -> Snapshot:
        state = self.sources.current_state()
        self.number = max(self.number, state.effects.last_tick) + 1
        windows = self.sources.windows()
        return Snapshot(self.number, self.sources.clock.now(), self.sources.settings(), windows, state)

    async def _fold_wholes_for_ever(self) -> None:
        await self.supervise("whole fold", self._fold_wholes)

    async def _fold_wholes(self) -> None:
        """Fold the newest snapshot whenever there is one that the whole onion has not seen."""
        while True:
            await self._news.wait()
            self._news.clear()
            if handed := self._handed:
                self._recorded.clear()
                try:
                    await self._fold_whole(*handed)
                finally:
                    self.folding.is_recording = False
                    self._recorded.set()

    async def _fold_whole(
        self, curr: Snapshot, reflex: TickRecord, storing: "asyncio.Task[TickRecord] | None"
    ) -> None:
        began = _now()
        folded = await self._fold(self.folding.whole, self.last_whole or curr, curr)
        self.last_whole = curr
        self._newest["whole"] = folded.layers
        tick_ms = min(reflex.tick_ms, self._bounded(folded.verdict.tick_ms))
        both = (*reflex.effects, *(effect.key for effect in folded.emitted))
        record = replace(
            reflex,
            layers=folded.layers,
            effects=both,
            engine=folded.engine,
            tick_ms=tick_ms,
            took_us=reflex.took_us + round((_now() - began) * 1e6),
        )
        if storing:
            record = replace(record, snapshot=(await storing).snapshot)
        await self._stored(record, curr)
        if (due := began + tick_ms / 1000) < self._due:
            self._due = due
            self.waker.ping()  # the loop waits for a later time

    async def _fold(self, fold: FoldSnapshot, prev: Snapshot, curr: Snapshot) -> FoldOutcome:
        try:
            folded = await fold(prev, curr)
        except PulseError as error:
            self.failed("tick", f"its effects could not be recorded: {error}")
            return FoldOutcome(Verdict(tick_ms=self.sources.settings().daemon.min_tick_ms * 4))
        for fault in folded.faults:
            self.failed(*fault)
        return folded

    def _bounded(self, tick_ms: int) -> int:
        return max(1, min(tick_ms, self.sources.settings().daemon.tick_ms))

    def _record(self, curr: Snapshot, reason: str, folded: FoldOutcome, began: float) -> TickRecord:
        return TickRecord(
            tick=curr.tick,
            moment=curr.now,
            woken_by=reason,
            head=Head(curr.state.seq + curr.state.provisional),
            samples=curr.samples(),
            settings=curr.settings.digest,
            version=self.stores.version,
            layers=folded.layers,
            effects=tuple(effect.key for effect in folded.emitted),
            tick_ms=self._bounded(folded.verdict.tick_ms),
            took_us=round((_now() - began) * 1e6),
            engine="",
        )

    def _store_beside(self, record: TickRecord, curr: Snapshot) -> "asyncio.Task[TickRecord] | None":
        """Store the snapshot of a reflex in a task: the next one does not wait for the disk."""
        if self._group is None or len(self._storing) >= MOST_UNSTORED:
            self.failed("tick", "its snapshot could not be kept: the disk is too slow")
            return None
        task = self._group.create_task(self._stored(record, curr), name=f"snapshot of tick {record.tick}")
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)
        return task

    async def _stored(self, record: TickRecord, curr: Snapshot) -> TickRecord:
        """Store the record, with its snapshot if effects were emitted; those are being carried out already."""
        if record.effects and not record.snapshot:
            await asyncio.sleep(0)  # recorded effects are begun before the snapshot is encoded
            try:
                record = replace(record, snapshot=await self._kept(curr))
            except (PulseError, OSError) as error:
                self.failed("tick", f"its snapshot could not be kept: {error}")
        self.stores.vitals.record(record)
        if record.effects:
            self.stores.kept()
        return record

    async def _kept(self, curr: Snapshot) -> str:
        """The name under which the snapshot is kept, one at a time; raises TimeoutError if the disk hangs, or hung before.

        Raises PulseError if those of the last hours have taken all that they may.
        """
        async with self._turn:
            if self._snapshot_bytes.room(_now()) <= 0:
                raise PulseError("many and large ones were kept already; ticks go on without")
            if self._keeping is None or self._keeping.done():
                encoded = (await join_in_slices(encode_snapshot(curr))).encode()
                self._snapshot_bytes.spend(len(encoded))
                self._keeping = asyncio.ensure_future(self.stores.objects.put(encoded))
                if (await asyncio.wait({self._keeping}, timeout=PATIENCE))[0]:
                    return self._keeping.result()
            raise TimeoutError("the disk does not answer")


def encode_snapshot(snapshot: Snapshot) -> Iterator[str]:
    """The snapshot with its windows and projections; settings by digest. JSON with its own version, in pieces.

    It is stored for ticks that emitted effects, so that it can be shown and folded again. Of a sample that has a fourth
    part, true, the third is only what differs from the one before: of a hundred processes of which one dies now and then a
    minute takes megabytes otherwise, and longer to encode than a restart takes.
    """
    values = ((one, snapshot.state.of(one)) for one in FOLD.projections.values())
    parts = {one.name: value for one, value in values if one.is_small(value)}
    windows = {key: _rows(window) for key, window in snapshot.windows.items()}
    whole = {
        "version": SNAPSHOT_VERSION,
        "tick": snapshot.tick,
        "now": snapshot.now,
        "seq": snapshot.state.seq,
        "supposed": snapshot.state.provisional,
        "settings": snapshot.settings.digest,
        "windows": windows,
        "folds": FOLD.versions,
        "projected": parts,
    }
    return encode_in_pieces(whole)


def _rows(window: Window) -> Iterator[list[object]]:
    """The samples of a window as values, made as they are needed."""
    before: Mapping[str, Json] = {}
    for sample in window.samples:
        data = sample.data
        if before and list(before) == list(data):
            changed = {name: value for name, value in data.items() if before[name] is not value}
            yield [sample.id, sample.moment, changed, True]
        else:
            yield [sample.id, sample.moment, data]
        before = data


def _resolve(answers: Iterable["asyncio.Future[None]"]) -> None:
    for answer in answers:
        if not answer.done():
            answer.set_result(None)


def _now() -> float:
    return asyncio.get_running_loop().time()
