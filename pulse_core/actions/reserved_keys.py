"""The keys that are survival's own: an effect of somebody else that held one open would keep survival from acting."""

from pulse_core.actions.declared import BUILT_IN
from pulse_core.model.actions import OUTWARD
from pulse_core.projections.notices import PREFIX

ACTIONS = frozenset(one.name for one in BUILT_IN if one.is_reserved)
TOPICS = frozenset({"blast-radius", "engine", "flapping", "llm", "log", "network", "resource", "stop"})
"""Of what survival rules tell people: what the rest of a notice's key begins with."""

BUDGET, RULES_BUDGET = "blast-radius", "blast-radius:engine"
"""Topics: survival's actions that are held back; and those of the rules inside of it."""
ABOUT_RULES = frozenset({PREFIX + RULES_BUDGET})
"""Keys of notices that only a fold with the rules inside can judge: a quiet heart would take it for over."""


def is_reserved(key: str) -> bool:
    """Whether only survival rules may wish for effects with this key."""
    head, _, rest = key.partition(":")
    return head in ACTIONS or (head in OUTWARD and rest.partition(":")[0] in TOPICS)
