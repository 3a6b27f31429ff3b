"""Twins of the adapters that the daemon works with, in memory and without threads, with the same promises.

With these and a loop in virtual time the whole daemon runs deterministically inside a test.
"""
