"""The names of the built-in actions, and what folds must know of an action."""

ARCHIVE_SESSIONS = "archive-sessions"
CLEAN_PATHS = "clean-paths"
COLLECT = "collect"
NOTIFY = "notify"
RESTART_PROCESS = "restart-process"
ROLLBACK_ENGINE = "rollback-engine"
RUN_COMMAND = "run-command"
STOP_PROCESS = "stop-process"

OUTWARD = frozenset({NOTIFY})
"""The actions that tell people something and change nothing on this machine: no budget of actions is charged with them.

A fold can't ask an executor, and must give the same value for old events: so the direction belongs to the name for ever.
"""
