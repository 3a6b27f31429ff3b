"""How fast and how small Pulse is, each number beside the raw limit measured in the same run.

Nothing here fails by the clock: what is slow is printed, and a person judges. `python -m tests.benchmarks`.
"""
