"""Agents: programs that do tasks. Pulse assigns, starts, watches and bounds them, and cleans up after them.

What an agent is told and how its answer is read is in `tools`; nothing here starts a process or reads a disk.
"""
