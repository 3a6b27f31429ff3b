"""The stores on SQLite: the event log, vitals, and checkpoints.

Every query lives here and nowhere else; nothing here decides anything. One connection a file writes and
checkpoints, all others open `mode=ro`: SQLite before 3.51.3 can corrupt a WAL database otherwise.
`reader` and `verify` are synchronous and import neither asyncio nor pydantic, for the command line's sake.
"""
