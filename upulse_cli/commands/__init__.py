"""One module a group of commands: each parses, calls one thing, and shows the answer.

All of these are imported at every start, so nothing slow is imported before a command needs it; and nothing
here writes to a store: what changes something is an event, recorded through `pulse_core.app.append`.
"""
