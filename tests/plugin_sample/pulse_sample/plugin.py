"""What the package adds: one rule that says how many effects the rules inside it wish."""

from pulse_core import Inner, Plugin, Snapshot, Verdict


async def sample_counts(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Note what comes from inside."""
    verdict = await inner(prev, curr)
    return verdict.noting(f"{len(verdict.effects)} effects from inside")


PLUGIN = Plugin("sample", rules=(sample_counts,))
