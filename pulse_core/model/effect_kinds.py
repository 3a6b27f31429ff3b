"""The kinds of events that end an effect, for readers that need none of the kinds' models."""

SETTLING = frozenset({"effect-acked", "effect-failed", "effect-unknown", "effect-cancelled"})
"""Of these kinds exactly one ends every effect."""
