"""Telling people: a notice is said where somebody reads it, at once in the daemon's log, and outside through Apprise.

Nothing here decides what is worth saying, or when it leaves. Apprise is never imported by the daemon: what delivers
needs TLS and memory and may hang, so it is a child that can be killed.
"""
