"""The names of the built-in actions, and the direction of actions, which folds need."""

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
