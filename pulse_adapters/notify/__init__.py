"""Delivers notices: at once to the daemon's log, and to outside services through Apprise.

Nothing here decides what is worth a notice, or when it is sent. The daemon never imports Apprise: delivery needs TLS
and memory and may hang, so it runs in a child that can be killed.
"""
