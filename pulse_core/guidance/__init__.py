"""Guidance: people change four files of a project, and the coding agent at work there notices, replans and acknowledges.

Everything is an event in the log; what lies in a project's `.pulse` beside those four files is written for other tools.
"""
