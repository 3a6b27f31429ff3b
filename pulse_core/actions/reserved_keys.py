"""Keys reserved for survival: an open effect of another rule with such a key would block survival."""

from pulse_core.projections.notices import PREFIX

TOPICS = frozenset({"blast-radius", "engine", "flapping", "log", "network", "resource", "stop"})
"""Topics of the core's survival rules: the beginning of a notice's key after the prefix."""

BUDGET, RULES_BUDGET = "blast-radius", "blast-radius:engine"
"""Topics: survival's actions that are held back; and those of the rules inside of it."""
ABOUT_RULES = frozenset({PREFIX + RULES_BUDGET})
"""Keys of notices that only the whole fold can evaluate: the reflex has no inner rules and would call them over."""
