"""The kinds of events that settle an effect, for readers that don't need the kinds' models."""

SETTLING = frozenset({"effect-acked", "effect-failed", "effect-unknown", "effect-cancelled"})
"""Exactly one event of these kinds settles each effect."""
