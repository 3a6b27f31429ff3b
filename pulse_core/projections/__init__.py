"""Projections are pure folds over the log: same events, same values, every time.

Nothing here reads a clock, a disk or a setting; what a fold must know is in the events.
"""
