"""The core's kinds of events, and what each one says; a capability's kinds are in its own folder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field

from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Payload, Role, Text, Wake, register


class DaemonStarted(Payload, kind="daemon-started", wakes=Wake.NEVER):
    """A daemon took the home and is about to sense and act. Subject: nothing."""

    pid: int
    version: str
    last_seen: int = Field(
        default=0,
        description="when a daemon before it that ended without a stop was last seen, by tick or sample; UTC microseconds",
    )


class DaemonStopped(Payload, kind="daemon-stopped", wakes=Wake.NEVER):
    """A daemon drained and left of its own will."""

    pid: int
    reason: Text


class DaemonHealthy(Payload, kind="daemon-healthy", wakes=Wake.NEVER):
    """The daemon has run for a minute, so that its end will not count towards safe mode."""


class SafeModeEntered(Payload, kind="safe-mode-entered", wakes=Wake.NOW):
    """The daemon starts in safe mode: without what may have ended those before it. Subject: nothing."""

    crashes: int = Field(description="starts in a row whose daemon was killed or failed within a minute")
    left_out: tuple[str, ...] = Field(description="what is not run: plugins, engine, optional-watchers")


class SafeModeLeft(Payload, kind="safe-mode-left", by=Role.PERSON, wakes=Wake.NOW):
    """Everything is run again; earlier crashes are forgotten."""

    why: Text = ""


class ReloadRequested(Payload, kind="reload-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person asks the daemon to read its settings again; answered by an event with this one as cause."""


class SettingsLoaded(Payload, kind="settings-loaded", wakes=Wake.NOW):
    """These settings are in force from now on."""

    digest: str = Field(description="SHA-256 of the settings in canonical JSON, hex")
    processes: tuple[str, ...] = ()
    gone: tuple[str, ...] = Field(
        default=(), description="processes that the settings before named, and these don't"
    )


class SettingsRejected(Payload, kind="settings-refused", wakes=Wake.NEVER):
    """New settings were refused; the old ones stay."""

    faults: tuple[Text, ...]


class LogVerified(Payload, kind="log-verified", wakes=Wake.NEVER):
    """The background check read the whole log; `fault` names the first bad row, or is empty."""

    rows: int
    took_ms: int
    fault: Text = ""
    anchored: Mapping[str, int] = Field({}, description="the last row that each anchor file knew")


class AnchorPlaces(Payload, kind="anchor-places", wakes=Wake.NEVER):
    """From now on the log's head is written down at these places outside of the home, where it can be read again."""

    places: tuple[str, ...] = Field(description="paths of files, and `journal`; none: nowhere any more")


class DamageAccepted(Payload, kind="damage-accepted", wakes=Wake.NEVER):
    """A damaged store was set aside by a person's order and the daemon went on without the lost rows."""

    what: Text
    kept_at: str


class LogRestored(Payload, kind="log-restored", wakes=Wake.NEVER):
    """The log was put back from a backup by a person's order; the first row after those that are there again."""

    source: str = Field(description="the backup's directory")
    made_at: int = Field(description="when it was made, UTC microseconds")
    rows: int = Field(description="how many rows it held")
    salvaged: int = Field(default=0, description="rows that were still sound in the log that was there")
    lost: int = Field(default=0, description="rows that are known to have been there and are gone")
    fault: Text = Field(default="", description="why not all rows could be kept; there may be more of them")
    kept_at: str = Field(default="", description="where the log that was there is kept")

    @property
    def has_gap(self) -> bool:
        """Whether rows may be missing behind those that are there again, and with them how the last daemon ended."""
        return not self.salvaged or self.lost > 0


class EventRedacted(Payload, kind="event-redacted", by=Role.PERSON, wakes=Wake.NEVER):
    """A person had the data of an earlier event taken out of the log; its row stays, and so does the chain.

    Subject: that event's id.
    """

    why: Text = Field(min_length=1)
    sha256: str = Field(default="", description="SHA-256 of what was there, hex; the writer fills it in")

    def completed(self, draft: Draft, kind: str, digest: bytes, is_empty: bool) -> Draft:
        """The draft of this redaction with the hash of what its event holds; raises Refused if it may not be redacted.

        kind: of the event that it names, empty if there is none; is_empty: whether what that said was taken out before.
        """
        if not kind:
            raise Refused(f"there is no event {draft.subject!r}; give its whole id")
        if kind in NEVER_REDACTED:
            raise Refused(
                f"an event {kind!r} can't be redacted: what is in force, or what is whole, is read from it"
            )
        if is_empty:
            raise Refused(f"what {draft.subject} said was taken out already")
        return replace(draft, payload=self.model_copy(update={"sha256": digest.hex()}), data="")


class GcRequested(Payload, kind="gc-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person wants what is of no use any more taken away now; answered by an event with this one as cause."""


class GcDone(Payload, kind="gc-done", wakes=Wake.NEVER):
    """What was of no use any more was taken away, as a person asked."""

    samples: int = Field(default=0, description="samples that were rolled up to minutes")
    ticks: int = Field(default=0, description="tick records")
    minutes: int = Field(default=0, description="minutes, one for each number of a sense")
    objects: int = Field(default=0, description="objects that nothing names")
    files: int = Field(default=0, description="other files")
    bytes: int = Field(default=0, description="bytes of objects and files")
    took_ms: int = 0
    fault: Text = Field(default="", description="what could not be done")


class ErrorReported(Payload, kind="error", wakes=Wake.NEVER):
    """Something of ours or of the user's failed and was contained. Subject: whose it was (`watcher:x`)."""

    message: Text
    repeats: int = Field(
        default=0, description="how often it came before this one since it was last recorded"
    )
    commit: str = Field(default="", description="of an engine's code: the commit that it is in")
    ended: bool = Field(default=False, description="whether the process that its rules run in ended by it")


class ProcessUp(Payload, kind="process-up", wakes=Wake.NOW):
    """A guarded process was found alive. Subject: its name in the settings."""

    pid: int | None = Field(description="None when only its port is known to answer")
    started: int | None = Field(description="its start time, clock ticks after boot")
    evidence: Text
    unlogged: Text = Field(
        default="", description="why its output is not in its log, if no recorded start of it says so"
    )


class ProcessDied(Payload, kind="process-died", wakes=Wake.NOW):
    """A guarded process is dead or no longer answers. Subject: its name."""

    pid: int | None
    evidence: Text
    healthy: bool = Field(description="it had been up for its `healthy_after`, so the backoff is reset")
    recovering: bool = Field(
        default=False, description="its own manager is bringing it back: it has its grace"
    )
    intended: bool = Field(
        default=False,
        description="Pulse ended it for its restart or stop, a person wants it down, or it was never up",
    )
    last_seen: int = Field(
        default=0,
        description="if it ended while no daemon looked: when it may have been alive last, UTC microseconds; else 0",
    )
    unexplained: bool = Field(default=False, description="it is gone, and nobody knows how it ended")
    failing: int = Field(
        default=0,
        description="of one that lives and does not serve: since when its probes fail, UTC microseconds; else 0",
    )
    printed: Text = Field(
        default="",
        description="the end of what it printed, at most 2,000 bytes without secrets; not Pulse's words",
    )


class DelayFields(BaseModel, defer_build=True):
    """What held something back, and for how long."""

    held_by: Text = Field(description="what held it back, as `a pause of ada`")
    since: int = Field(description="from when on, UTC microseconds")
    held_us: int = Field(description="for how long, microseconds")
    lasts: bool = Field(
        default=False, description="whether it still was; such an event is recorded once, after a second"
    )


class RestartDelayed(DelayFields, Payload, kind="restart-delayed", wakes=Wake.NEVER):
    """The restart of a dead process was held back for a tenth of a second or more. Subject: its name."""


class AnswerDelayed(DelayFields, Payload, kind="answer-delayed", wakes=Wake.NEVER):
    """What survival wished to do about a condition was held back for a tenth of a second or more. Subject: its name."""


class ProcessStopped(Payload, kind="process-stopped", wakes=Wake.NOW):
    """systemd has the unit of a guarded process inactive, or told it to stop; `evidence` says what it knows of why."""

    evidence: Text
    expires_us: int = Field(description="for how long this intent holds, microseconds")


class ProcessStopRequested(Payload, kind="process-stop-requested", by=Role.PERSON, wakes=Wake.NOW):
    """A person wants this process down; the healer does not fight it until it expires. Subject: its name."""

    expires_us: int | None = Field(
        default=None,
        gt=0,
        description="for how long it holds, microseconds; the writer fills in `intent.expires`",
    )
    why: Text = ""


class ProcessStartRequested(Payload, kind="process-start-requested", by=Role.PERSON, wakes=Wake.NOW):
    """A person wants this process up again; ends a stop and resets its budget. Subject: its name."""

    why: Text = ""


class ProcessRestartRequested(Payload, kind="process-restart-requested", by=Role.PERSON, wakes=Wake.NOW):
    """A person wants this process ended and started again; ends a stop and resets its budget. Subject: its name."""

    why: Text = ""


class ConditionRaised(Payload, kind="condition-raised", wakes=Wake.NOW):
    """Something has been wrong for long enough. Subject: the condition, as `memory` or `disk:/var`.

    Raised again while it stands, it says that it is worse or otherwise wrong (`state` or `evidence` differs).
    """

    evidence: Text
    state: str = Field(default="", description="which way it is wrong, as `down`, `slow`, `dns-only`")
    value: float | None = Field(default=None, description="what was measured")
    bound: float | None = Field(default=None, description="what it went over")
    failing: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="since when it is so, if that was not enough yet; UTC microseconds",
    )


class ConditionCleared(Payload, kind="condition-cleared", wakes=Wake.NOW):
    """What was wrong is well again, or nobody looks at it any more. Subject: the condition."""

    evidence: Text
    value: float | None = None
    unwatched: bool = Field(
        default=False, description="nobody looks at it any more, so whether it is over is not known"
    )
    wrong: int = Field(
        default=0, description="when it was last seen wrong, UTC microseconds; 0: nobody knows"
    )


class LogMatched(Payload, kind="log-matched", wakes=Wake.NOW):
    """Lines that somebody looks for were written. Subject: the file's path, or the unit's name.

    Where the reader stands afterwards goes with it, so that no line is told twice, or forgotten, by a crash.
    """

    severity: str = Field(description="warning, error or critical")
    lines: tuple[Text, ...] = Field(description="the lines, oldest first; of a storm only the first ones")
    count: int = Field(description="how many lines there were, with those that are not told")
    place: dict[str, Json] = Field(
        default_factory=dict, description="where the reader stands: file identity and offset, or cursor"
    )


class PromoteRequested(Payload, kind="promote-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person wants the engine to be this commit; answered by an event with this one as cause. Subject: it."""

    previous: str = Field(description="the commit that was in force; with another one it is refused")
    why: Text = ""
    gates: tuple[Text, ...] = Field(
        default=(), description="which gates it passed, and which were skipped and why"
    )
    changes: Text = Field(default="", description="what changes in behaviour, as replay showed it")
    changed: tuple[str, ...] | None = Field(
        default=None, description="the files that differ from those of `previous`; None if that is not known"
    )


class RollbackRequested(Payload, kind="rollback-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person wants an earlier commit of the engine back; answered likewise. Subject: it (the one before if empty)."""

    why: Text = ""


class EngineChangeStarted(Payload, kind="engine-change-started", wakes=Wake.NEVER):
    """The daemon begins a promote or rollback that was asked for; if it crashes meanwhile, the request is refused.

    Subject: the request's id.
    """


class EnginePromoted(Payload, kind="promote", wakes=Wake.NOW):
    """The engine's rules are another commit now. Subject: the commit."""

    previous: str = Field(description="the commit before, to which a rollback goes")
    watch_us: int = Field(gt=0, description="how long it is watched for errors, microseconds")
    asked_by: Text = Field(default="", description="who asked for it")
    why: Text = ""
    gates: tuple[Text, ...] = ()
    changes: Text = ""
    projections: dict[str, str] = Field(
        default_factory=dict, description="its own projections and their versions"
    )
    changed: tuple[str, ...] | None = Field(default=None, description="as in the request")


class EngineRolledBack(Payload, kind="rollback", wakes=Wake.NOW):
    """The engine's rules are those of an earlier commit again. Subject: the new commit that says so."""

    rejected: str
    to: str = Field(default="", description="the earlier commit")
    why: Text = ""
    asked_by: Text = Field(default="", description="who asked for it")
    kept_as: str = Field(default="", description="the branch that keeps what was rejected")


class PromoteRefused(Payload, kind="promote-refused", wakes=Wake.NEVER):
    """The engine stays as it was. Subject: the commit that was asked for."""

    why: Text


class EngineLoaded(Payload, kind="engine-loaded", wakes=Wake.NEVER):
    """A host runs these rules from now on. Subject: the commit."""

    rules: tuple[str, ...] = ()
    instead_of: str = Field(default="", description="the commit that should run, and could not be loaded")
    why: Text = Field(default="", description="why it could not")
    took_ms: int = 0


class EngineDisabled(Payload, kind="engine-disabled", by=Role.PERSON, wakes=Wake.NEVER):
    """A person wants no code of the engine or of plugins run, until `engine-enabled`, a promote or a rollback."""

    why: Text = ""


class EngineEnabled(Payload, kind="engine-enabled", by=Role.PERSON, wakes=Wake.NEVER):
    """A person wants the engine run again."""

    why: Text = ""


class RuleQuarantined(Payload, kind="rule-quarantined", wakes=Wake.NEVER):
    """A rule is passed over until another commit is in force. Subject: its name."""

    commit: str
    why: Text


class WorkShed(Payload, kind="work-shed", wakes=Wake.NEVER):
    """Pulse itself took too much, and does less from now on (level 0: everything again)."""

    level: int = Field(ge=0, description="how many of the measures are taken")
    measures: tuple[str, ...] = ()
    evidence: Text = ""


class Paused(Payload, kind="paused", by=Role.PERSON, wakes=Wake.NOW):
    """The kill switch: from now on Pulse only watches."""

    why: Text = ""


class Resumed(Payload, kind="resumed", by=Role.PERSON, wakes=Wake.NOW):
    """Pulse acts again."""

    why: Text = ""


ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
"""What stands in a table's row: a line break in it could forge the next row."""


class Effect(Payload, kind="effect", by=Role.PERSON, wakes=Wake.NEVER):
    """A description of an action somebody wishes; only executors act.

    The event's id is the effect's id, and the event's subject is `key`.
    """

    action: str = Field(
        min_length=1, max_length=200, pattern=ONE_LINE, description="the kind of action, as `restart-process`"
    )
    key: str = Field(min_length=1, max_length=500, pattern=ONE_LINE, description="unique among open effects")
    params: dict[str, Json] = Field(default_factory=dict)
    reason: Text = ""
    not_after: int | None = Field(
        default=None, ge=0, lt=2**63, description="UTC microseconds after which it is not begun"
    )
    survival: bool = False
    capability: bool = False
    rule: str = ""
    tick: int | None = None
    commit: str = Field(
        default="", max_length=100, pattern=ONE_LINE, description="of the engine, whose rule requests it"
    )
    samples: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...] = Field(
        default=(), description="ids of the samples it stands on"
    )
    because: str = Field(
        default="",
        max_length=100,
        pattern=ONE_LINE,
        description="the id of the event that it follows from; recorded as the event's `cause`",
    )


class EffectExecuting(Payload, kind="effect-executing", wakes=Wake.NEVER):
    """An executor is about to act; on disk before it does. Subject: the effect's id, as in all below."""

    attempt: int = 1


class EffectAttemptFailed(Payload, kind="effect-attempt-failed"):
    """One attempt failed and another one follows."""

    attempt: int
    error: Text
    retry_us: int = Field(description="microseconds until the next attempt")
    result: dict[str, Json] = Field(
        default_factory=dict, description="what was done of it nevertheless, as of a notice `sent_to`"
    )


class EffectAcked(Payload, kind="effect-acked"):
    """The action was done and worked. Settles the effect."""

    took_us: int = Field(description="microseconds, without those in which the daemon stood still")
    result: dict[str, Json] = Field(default_factory=dict)


class EffectFailed(Payload, kind="effect-failed"):
    """The action was tried and did not work. Settles the effect."""

    error: Text
    result: dict[str, Json] = Field(default_factory=dict)
    not_startable: bool = Field(
        default=False,
        description="whether this machine cannot start the program, which no commit of the engine can be blamed for",
    )


class EffectUnknown(Payload, kind="effect-unknown"):
    """Nobody can know whether the action happened, and it must not happen twice. Settles the effect."""

    why: Text


class EffectCancelled(Payload, kind="effect-cancelled"):
    """The action was not begun and will not be. Settles the effect."""

    why: Text
    replaced: bool = Field(
        default=False, description="whether a newer effect of its key, which is the next one, takes its place"
    )


class EffectCancelRequested(Payload, kind="effect-cancel-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person asks to cancel a pending effect, or to stop an executing one; a rollback asks to cancel those that the rules
    which it takes back have wished for.
    """

    why: Text = ""


NEVER_REDACTED = frozenset(
    kind.kind
    for kind in (EventRedacted, DamageAccepted, LogRestored, SettingsLoaded, EnginePromoted, EngineRolledBack)
)
"""Kinds without which the log would be read otherwise: which rows may be empty, and which engine is in force."""


CORE_KINDS = tuple(kind for kind in Payload.__subclasses__() if kind.__module__ == __name__)
"""The kinds of this module, in its order; a list written by hand could lack one."""

register(CORE_KINDS)
