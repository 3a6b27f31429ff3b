"""What a child is given: its descriptors beyond the standard three, and the mark in the memory that both sides see."""

REPLIES, SHARED, WHERE, REQUESTS = 3, 4, 5, 6
"""Replies, the shared memory, where it was when it hung, and requests."""
MARK = 4
"""Bytes of the mark that says what is under way, 0 for nothing."""
