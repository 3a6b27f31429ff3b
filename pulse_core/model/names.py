"""Names that folds, rules, watchers and executors share: of actions, of conditions, and of kinds that settle an effect."""

from collections.abc import Iterator

ARCHIVE_SESSIONS = "archive-sessions"
CLEAN_PATHS = "clean-paths"
COLLECT = "collect"
NOTIFY = "notify"
RESTART_PROCESS = "restart-process"
ROLLBACK_ENGINE = "rollback-engine"
RUN_COMMAND = "run-command"
STOP_PROCESS = "stop-process"

OUTWARD = frozenset({NOTIFY})
"""The actions that notify people and change nothing on this machine: they are not charged to the budget of actions.

A fold can't ask an executor, and must give the same value for old events: so the direction belongs to the name for ever.
"""

NOTICE_SEVERITIES = ("info", "warning", "error", "critical")
"""How severe notices may be, the mildest first."""

TRIAL_NOTICE = "trial-notice"
"""The key of a notice that is sent to see whether it arrives: to all addresses at once, also those that failed before."""

ONLY_LOGGED = "only logged"
"""What is said of a notice that was acked without an address that takes it."""

SETTLING = frozenset({"effect-acked", "effect-failed", "effect-unknown", "effect-cancelled"})
"""Exactly one event of these kinds settles each effect."""

NETWORK = "network"
"""The condition of network trouble, and the watcher that raises it."""

QUALITY = f"{NETWORK}:quality"
"""The topic of notices of a network that works, but not well; they are about its condition, as those of an outage are."""

WELL, DOWN, DNS_ONLY, HTTP_ONLY, SLOW, DEGRADED = "", "down", "dns-only", "http-only", "slow", "degraded"
"""States of the network: everything answers; nothing does; only DNS fails; only HTTP fails; every answer is slow; some
targets fail."""

SYSTEM_RESOURCE = "system-resource"
"""The watcher of the machine's resources."""

PROCESS_USAGE = "process-usage"
"""The watcher of what the trees of guarded processes take."""

HELD_BACK = "; held back until now: "
"""What stands in the reason of an effect before what had held it back."""

NOT_WATCHED = "not watched in safe mode"
"""What is said of whatever an optional watcher would look at, while safe mode leaves these out."""

USAGE = "usage:"
"""What the names of its conditions begin with; the process and `memory` or `cpu` follow."""

PLUGINS, ENGINE, OPTIONAL_WATCHERS = "plugins", "engine", "optional watchers"
"""What safe mode leaves out, in this order: each stays left out when the next one is, too."""

INDISTINCT = "nobody can tell which one it is"
"""What is said of several processes of which each may be the guarded one."""

PROCESS_TOPICS = ("flapping", "stop", "doubt")
"""With what the topics of notices of processes begin; the process follows."""

OF_MEMORY = ("memory", "pressure:memory", "swap")
"""The conditions that are answered by stopping a process; an earlier one explains those behind it."""


def subjects_of(key: str) -> Iterator[str]:
    """What the key of an effect may be about, the likeliest first: what it ends with, and the network for its quality."""
    _, *rest = key.split(":")
    yield from (":".join(rest[place:]) for place in range(len(rest)))
    if ":".join(rest) == QUALITY:
        yield NETWORK


def is_of_process(key: str) -> bool:
    """Whether the key is that of a notice of a process, which may have the name of a condition, as `network`."""
    return key.partition(":")[2].partition(":")[0] in PROCESS_TOPICS
