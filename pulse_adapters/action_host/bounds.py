"""Bounds that both sides of the action host apply."""

MOST_BYTES = 64 * 1024
"""Of a sample, or of a result, as JSON."""
