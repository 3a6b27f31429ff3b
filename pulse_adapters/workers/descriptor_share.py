"""Survival has its own share of this process's descriptors, which callers and runs of agents leave alone."""

import os
import resource

SHARE = 32
"""Descriptors that restarts of many processes at once need beside what they hold."""


def are_descriptors_scarce(shares: int = 1) -> bool:
    """Whether fewer than so many shares are free; of a small limit a share is a quarter."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:  # none is left to look with
        return True
    return most - used < shares * min(SHARE, most // 4)
