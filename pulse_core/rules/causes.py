"""Which event a survival effect is the consequence of, so that the log tells chains of causes."""

from pulse_core.model.kinds import Effect
from pulse_core.model.names import is_of_process, subjects_of
from pulse_core.projections.conditions import FOR
from pulse_core.projections.state import Snapshot


def cause_of_effect(effect: Effect, curr: Snapshot) -> str:
    """The id of the event that raised the condition which it answers or tells of, or of the last death or request of its
    process; empty if it has neither."""
    subjects, process = tuple(subjects_of(effect.key)), effect.params.get("process")
    named = () if is_of_process(effect.key) else [one for one in subjects if one != process]
    conditions = (curr.conditions[str(name)] for name in (effect.params.get(FOR), *named) if name)
    if condition := next(filter(None, conditions), None):
        return condition.event
    processes = curr.state.processes.of
    names = (name for name in (process, *subjects) if isinstance(name, str) and name in processes)
    return next((processes[name].cause for name in names), "")
