"""The catalogue: every kind of event this version knows, and what each one says."""

from pydantic import Field

from pulse_core.model.payload import Json, Payload, Role, Text, Wake


class DaemonStarted(Payload, kind="daemon-started", wakes=Wake.NEVER):
    """A daemon took the home and is about to sense and act. Subject: nothing."""

    pid: int
    version: str


class DaemonStopped(Payload, kind="daemon-stopped", wakes=Wake.NEVER):
    """A daemon drained and left of its own will."""

    pid: int
    reason: Text


class ReloadRequested(Payload, kind="reload-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person asks the daemon to read its settings again; answered by an event with this one as cause."""


class SettingsLoaded(Payload, kind="settings-loaded", wakes=Wake.NOW):
    """These settings are in force from now on."""

    digest: str = Field(description="SHA-256 of the settings in canonical JSON, hex")
    processes: tuple[str, ...] = ()


class SettingsRefused(Payload, kind="settings-refused", wakes=Wake.NEVER):
    """New settings were refused; the old ones stay."""

    faults: tuple[Text, ...]


class LogVerified(Payload, kind="log-verified", wakes=Wake.NEVER):
    """The background check read the whole log; `fault` names the first bad row, or is empty."""

    rows: int
    took_ms: int
    fault: Text = ""


class DamageAccepted(Payload, kind="damage-accepted", wakes=Wake.NEVER):
    """A damaged store was set aside by a person's order and the daemon went on without the lost rows."""

    what: Text
    kept_at: str


class ErrorReported(Payload, kind="error", wakes=Wake.NEVER):
    """Something of ours or of the user's failed and was contained. Subject: whose it was (`watcher:x`)."""

    message: Text
    repeats: int = Field(default=0, description="how often it came again since it was last recorded")


class ProcessUp(Payload, kind="process-up", wakes=Wake.NOW):
    """A guarded process was found alive. Subject: its name in the settings."""

    pid: int | None = Field(description="None when only its port is known to answer")
    started: int | None = Field(description="its start time, clock ticks after boot")
    evidence: Text


class ProcessDied(Payload, kind="process-died", wakes=Wake.NOW):
    """A guarded process is dead or no longer answers. Subject: its name."""

    pid: int | None
    evidence: Text
    healthy: bool = Field(description="it had been up for its `healthy_after`, so budget and backoff reset")
    recovering: bool = Field(
        default=False, description="its own manager is bringing it back: it has its grace"
    )


class ProcessStopped(Payload, kind="process-stopped", wakes=Wake.NOW):
    """A guarded process was stopped on purpose by its own manager (a unit inactive with success)."""

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
    not_after: int | None = Field(default=None, description="UTC microseconds after which it is not begun")
    survival: bool = False
    rule: str = ""
    tick: int | None = None
    samples: tuple[int, ...] = Field(default=(), description="ids of the samples it stands on")


class EffectExecuting(Payload, kind="effect-executing", wakes=Wake.NEVER):
    """An executor is about to act; on disk before it does. Subject: the effect's id, as in all below."""

    attempt: int = 1


class EffectAttemptFailed(Payload, kind="effect-attempt-failed"):
    """One attempt failed and another one follows."""

    attempt: int
    error: Text
    retry_us: int = Field(description="microseconds until the next attempt")


class EffectAcked(Payload, kind="effect-acked"):
    """The action was done and worked. Settles the effect."""

    took_us: int
    result: dict[str, Json] = Field(default_factory=dict)


class EffectFailed(Payload, kind="effect-failed"):
    """The action was tried and did not work. Settles the effect."""

    error: Text
    result: dict[str, Json] = Field(default_factory=dict)


class EffectUnknown(Payload, kind="effect-unknown"):
    """Nobody can know whether the action happened, and it must not happen twice. Settles the effect."""

    why: Text


class EffectCancelled(Payload, kind="effect-cancelled"):
    """The action was not begun and will not be. Settles the effect."""

    why: Text


class EffectCancelRequested(Payload, kind="effect-cancel-requested", by=Role.PERSON, wakes=Wake.NEVER):
    """A person asks to cancel a pending effect, or to stop an executing one."""

    why: Text = ""


SETTLING = frozenset(kind.kind for kind in (EffectAcked, EffectFailed, EffectUnknown, EffectCancelled))
"""The kinds of which exactly one ends every effect."""
