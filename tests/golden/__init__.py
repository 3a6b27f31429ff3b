"""Logs of every release, kept for ever: each later release must fold them to the same state."""
