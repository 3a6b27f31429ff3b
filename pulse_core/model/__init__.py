"""The nouns of Pulse: frozen values for what happened, what is wished and what was sensed.

Nothing here reads a clock, a disk or a random number, and nothing here changes after it was made.
"""
