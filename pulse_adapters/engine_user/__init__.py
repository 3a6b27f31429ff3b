"""The user that the engine's own code runs as where the daemon is root: who it is, how it is made, what it may read.

The code of authors is laid out anew for it, in a place of its own: the home stays closed. Nothing here runs an engine,
and nothing here follows a link that somebody else could have made.
"""
