"""Ports: small protocols that adapters implement; their docstrings state the guarantees.

Those of the daemon have a real adapter and a twin in `pulse_adapters.memory`; one contract suite runs over both. Those that
only commands need (a client of the daemon, a repository, checks of code) are tested with real files and processes.
"""
