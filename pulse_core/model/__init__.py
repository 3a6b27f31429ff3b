"""The domain values of Pulse, all frozen: events, effects, samples, and what they are made of.

Nothing here reads a clock, a disk or a random number, and nothing here changes after it was made.
"""
