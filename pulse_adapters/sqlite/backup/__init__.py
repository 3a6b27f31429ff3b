"""Backups: a home copied into a directory of its own, and put back from there.

A backup is made beside a running daemon and disturbs nobody; it has its name only once it is whole, on disk and
read back. A restore prepares everything beside the stores, decides by one rename, and from then on can only be
finished; what was there is moved aside, and nothing is overwritten.
"""
