"""The daemon's local interface: a lock that names the one writer, and a Unix socket whose callers the kernel names.

Nothing here knows what a request means; the handler does. `client` and `lock` are imported by the command
line at every start, so they import neither asyncio nor pydantic, and nor does this file.
"""
