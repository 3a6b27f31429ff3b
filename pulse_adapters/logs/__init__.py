"""Follows logs: files through inotify, journal units through `journalctl`; matches are reported with their position.

All reading and searching is done by one child process that can be killed at any time (`tail` and what it imports:
standard library only, so that it stays small). The daemon starts it, sends it the positions to begin at, and reads its
messages. Nothing here decides what a line means for the machine.
"""
