"""What both sides hold a child to."""

MOST_BYTES = 64 * 1024
"""Of a sample, or of a result, as JSON."""
