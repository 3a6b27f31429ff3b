"""Silences: effects that people want held back, for a while or at certain times of the week.

A silence drops effects that rules request; it does not affect effects added by hand, nor processes.
"""
