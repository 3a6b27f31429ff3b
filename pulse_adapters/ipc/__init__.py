"""The daemon's door: one lock that says who writes, one Unix socket that says who calls.

Nothing here knows what a request means; the handler does. `client` and `lock` are imported by the command
line at every start, so they import neither asyncio nor pydantic, and nor does this file.
"""
