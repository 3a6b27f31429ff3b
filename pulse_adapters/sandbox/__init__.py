"""Where an author's code runs so that it can harm nothing else: what the kernel confines, and tools run on a copy.

A rule host locks itself in by `confinement`. The tools of a promote's gates (mypy, pytest) do the same, on a read-only
copy of the files, in a process that this room starts and ends.
"""
