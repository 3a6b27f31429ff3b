"""The core of Pulse: nouns, folds, rules and loops. It knows the outside only through `pulse_core.ports`."""

__version__ = "0.1.0"
