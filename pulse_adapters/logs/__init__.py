"""Followed logs: files through inotify, journal units through `journalctl`; what matches is told with its place.

All reading and searching is done by one child process that can be killed at any time (`tail` and what it imports:
standard library only, so that it stays small). The daemon starts it, listens to it, and tells it where to begin. Nothing
here decides what a line means for the machine.
"""
