"""The contents of a capability. The core uses them by their types, and knows no capability by name.

`pulse_core.capabilities` is the list of them; the module `capability.py` of each has one value, `CAPABILITY`.
`docs/adding-a-capability.md` says how to add one.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pulse_core.actions import ActionDeclaration
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft, Event
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Payload, Role
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.commands import CommandProber
from pulse_core.ports.executor import Executor
from pulse_core.ports.log import Listener
from pulse_core.ports.prober import Prober
from pulse_core.ports.programs import Programs
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import CurrentState, Snapshot, State, StateProjection
from pulse_core.rules import Rule
from pulse_core.rules.survival.holds import Holds
from pulse_core.settings.settings import Settings
from pulse_core.settings.settings_group import SettingsGroup

FoldWithout = Callable[[Rule | None], Verdict]
"""Folds the package's rules at this moment without one of them, or all: what they would request."""

SubjectReport = Callable[[str, Snapshot, FoldWithout], Mapping[str, Json] | None]
"""What a name means to a capability, and why that is as it is: `kind`, `name`, `state`, `since`, `why` and more; None if
nothing."""

Check = Callable[[Draft, Role, State, Settings], None]
"""Checks a draft, whose moment is now, from a caller of this role before it is recorded; raises Refused with the reason
if it may not be.

Two drafts with the same subject are never checked at the same time: what the first one changes is in the state by then.
"""


class RecordedBefore(Refused):
    """What a draft says was said before by the same caller, who asks again. row: of that event, which is the answer."""

    def __init__(self, words: str, row: int) -> None:
        super().__init__(words)
        self.row = row


class RefusedOnRecord(Refused):
    """A draft that may not be recorded, though it must not be lost that somebody wanted that.

    record: says so, of this subject.
    """

    def __init__(self, words: str, record: Payload, subject: str) -> None:
        super().__init__(words)
        self.record, self.subject = record, subject


class Scope(Protocol):
    """What a caller is bound to that may do less than its role says. actor: the name that its events bear; granted: kinds
    that it may record as a person may, since `bounded` leaves of them only what it may."""

    @property
    def actor(self) -> str: ...

    @property
    def granted(self) -> frozenset[str]: ...

    def bounded(self, draft: Draft, state: State) -> Draft:
        """The draft as it may be recorded, which is checked as all are; raises Refused."""

    def shown(self, state: State) -> Mapping[str, Json]:
        """All that it may read."""


Scopes = Callable[[int, int, str], Awaitable[Scope | None]]
"""What a caller of the socket is bound to, by its pid, its uid and the token that it says; raises TimeoutError if the disk
with the tokens doesn't answer."""


class SurvivalRule(NamedTuple):
    """A rule of the reflex, and the core's own survival rule directly inside of which it stands (its name).

    The reflex has one order, which `tests/unit/test_composition.py` writes down, and each place in it has a reason.
    """

    rule: Rule
    inside_of: str


@dataclass(frozen=True)
class WatcherContext:
    """What a capability's watcher may use. commands: runs those that say by their exit how something is; window: returns the
    present window of a key; home: its directory; append: records drafts as the daemon's own, after the checks that those
    from outside must pass, too, for what others may record at the same time; listen: has somebody told of what was
    recorded."""

    prober: Prober
    commands: CommandProber
    clock: Clock
    settings: Callable[[], Settings]
    state: CurrentState
    window: Callable[[str], Window]
    programs: Programs
    home: HomeLayout
    append: Callable[[Draft], Awaitable[Event]]
    listen: Callable[[Listener], None]


@dataclass(frozen=True)
class ExecutorContext:
    """What a capability's executors may use. append: records drafts as the daemon's own, after the checks that those from
    outside must pass, too; raises PulseError if they may not be, or can't be now."""

    settings: Callable[[], Settings]
    state: CurrentState
    append: Callable[[Draft], Awaitable[Event]]
    programs: Programs
    home: HomeLayout


@dataclass(frozen=True)
class Capability:
    """One capability; what is left out it does not have. name: of its folders, and in `capabilities.CAPABILITIES`.

    kinds: of its events. projections: what it remembers of them. admits: by the kind of a draft from outside, the check
    that it must pass; alone: those of these kinds of which one is checked and recorded at a time, whatever its subject,
    since its check looks at the other subjects, too. rules: folded inside the survival rules and outside of plugins'
    and the engine's, outermost first; in the whole fold alone. survival_rules: part of the reflex, each with its place
    there; they are survival's, so nothing but this package brings any. holds: what is held back at this moment. topics:
    of notices that only survival may tell. own_topics: of those that rules of others may not tell.
    reserved: beginnings of other keys that only survival may request.
    explains: which log lines a condition explains, by the beginning of the condition's name. settings: its groups,
    fields of the root. status: lines for `upulse status`, or none. programs: what it has started and runs now, in
    words. subject: what `upulse why NAME` says of names that it knows. seen: what one of its conditions that stands is by
    now, in words; empty if nothing newer is known than what raised it. watchers: those that need no adapter of their
    own. actions: what its executors carry out, each as its declaration. executors: those that need no adapter of
    their own.
    """

    name: str
    kinds: tuple[type[Payload], ...] = ()
    projections: tuple[StateProjection[Any], ...] = ()
    admits: Mapping[str, Check] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    survival_rules: tuple[SurvivalRule, ...] = ()
    holds: Holds | None = None
    topics: frozenset[str] = frozenset()
    own_topics: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    explains: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    settings: tuple[SettingsGroup[Any], ...] = ()
    status: Callable[[Snapshot], Iterable[str]] | None = None
    programs: Callable[[Snapshot], Iterable[str]] = lambda curr: ()
    subject: SubjectReport | None = None
    seen: Callable[[str, Condition, Snapshot], str] = lambda name, condition, curr: ""
    watchers: Callable[[WatcherContext], Sequence[Watcher]] = lambda context: ()
    actions: tuple[ActionDeclaration, ...] = ()
    executors: Callable[[ExecutorContext], Sequence[Executor]] = lambda context: ()
