"""The keys that are survival's own: an effect of somebody else that held one open would keep survival from acting."""

from collections.abc import Collection

ACTIONS = frozenset(
    {"restart-process", "stop-process", "clean-paths", "archive-sessions", "collect", "rollback-engine"}
)
TOPICS = frozenset({"blast-radius", "engine", "flapping", "log", "network", "resource", "stop"})


def is_reserved_by(topics: Collection[str], key: str) -> bool:
    """Whether only survival rules may wish for effects with this key; topics: those of capabilities' survival rules."""
    head, _, rest = key.partition(":")
    return head in ACTIONS or (head == "notify" and rest.partition(":")[0] in {*TOPICS, *topics})
