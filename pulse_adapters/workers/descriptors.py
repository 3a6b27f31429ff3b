"""The private descriptors that a worker is given beyond the standard three.

The first two are every worker's; the others a host's alone, which runs code that may hang.
"""

REPLIES, REQUESTS = 3, 6
SHARED, WHERE = 4, 5
"""Memory that both sides see, and where the code was when it hung."""
FIRST_OTHER = 7
"""Whatever is open from here on is none of a worker's."""
MARK = 4
"""Bytes in the shared memory that say what is under way, 0 for nothing."""
