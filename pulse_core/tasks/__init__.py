"""Tasks: what is uncertain, handed to agents and people, with a lifecycle on the log.

A task is not run here: whoever claims it does the work, under a lease. Nothing in this package starts a process.
"""
