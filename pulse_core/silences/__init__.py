"""Silences: what people want held back, for a while or at certain times of the week; Pulse does not fight it.

Nothing is held back that was added by hand, and no process is kept from anything: a silence drops what rules wish for.
"""
