"""Confines authors' code by the kernel's means, and runs tools on a read-only copy of the files.

A rule host confines itself by `confinement`. The tools of a promote's gates (mypy, pytest) do the same, on a read-only
copy of the files, in a process that this room starts and ends.
"""
