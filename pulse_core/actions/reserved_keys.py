"""The keys that are survival's own: an effect of somebody else that held one open would keep survival from acting."""

from pulse_core.projections.notices import PREFIX

TOPICS = frozenset({"blast-radius", "engine", "flapping", "log", "network", "resource", "stop"})
"""Of what the core's survival rules tell people: what the rest of a notice's key begins with."""

BUDGET, RULES_BUDGET = "blast-radius", "blast-radius:engine"
"""Topics: survival's actions that are held back; and those of the rules inside of it."""
ABOUT_RULES = frozenset({PREFIX + RULES_BUDGET})
"""Keys of notices that only a fold with the rules inside can judge: a quiet heart would take it for over."""
