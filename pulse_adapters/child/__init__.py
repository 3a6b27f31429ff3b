"""A child process that speaks frames over pipes with the daemon: what the hosts of authors' code have in common.

What such a child does, and how it is confined, is not known here; nothing that it says is believed here either.
"""
