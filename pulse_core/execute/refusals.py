"""What refused effects cost the rules that request them."""

from pulse_core.model.moment import US_PER_SECOND, Moment

MINUTE = 60 * US_PER_SECOND


class Refusals:
    """Refused effects of rules within a minute, by their keys: the same one over and over counts once."""

    def __init__(self) -> None:
        self._refused: dict[str, dict[str, Moment]] = {}

    def add(self, rule: str, key: str, now: Moment) -> None:
        """Count one."""
        self._refused.setdefault(rule, {})[key] = now

    def of(self, rule: str, now: Moment) -> int:
        """How many there are of this rule."""
        kept = {key: at for key, at in self._refused.pop(rule, {}).items() if now.since(at) < MINUTE}
        if kept:
            self._refused[rule] = kept
        return len(kept)
