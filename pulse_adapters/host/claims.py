"""For which guarded process a process is held, or was started: it is never found for another one."""

from collections.abc import Iterable, Mapping

from pulse_adapters.host.lives import Lives
from pulse_adapters.host.marked_processes import HomeMarks, bearer_of
from pulse_adapters.host.process_identity import is_produced_by
from pulse_adapters.workers.proc import is_alive, session_of
from pulse_core.ports.host import ProcessId
from pulse_core.settings.processes import ProcessSettings


class Claims:
    """Who is held for which of these processes. known: whom the log says, by name; of other names it counts for nothing.

    before: those of another look that is under way, whose finds count, too.
    """

    def __init__(
        self,
        processes: Iterable[ProcessSettings],
        known: Mapping[str, ProcessId],
        lives: Lives | None,
        marks: HomeMarks,
        before: "Claims | None" = None,
    ) -> None:
        self._processes = {one.name: one for one in processes}
        self._marks, self.known = marks, known
        every = lives.lasts() if lives else {}
        self.unguarded = {name: life.found for name, life in every.items() if name not in self._processes}
        """What was started last for names that are not among these."""
        lasts = {name: life for name, life in every.items() if name in self._processes}
        self._effects = {name: life.effect for name, life in lasts.items()}
        self._names = {life.found: name for name, life in lasts.items()}
        self._names |= {one: name for name, one in known.items() if name in self._processes}
        found = before.found if before else {}
        self.found: dict[ProcessId, str] = {one: name for one, name in found.items() if is_alive(one)}
        self._names |= self.found

    def has_life(self, name: str) -> bool:
        """Whether anything was started for this name in this boot."""
        return name in self._effects

    def add(self, name: str, found: ProcessId) -> None:
        """Hold a process that was just found."""
        self._names[found] = self.found[found] = name

    def other(self, name: str, found: ProcessId) -> str:
        """The other one that this process is held for, or was started for and is not recorded; empty if there is none."""
        if holder := self._names.get(found):
            return holder if holder != name else ""
        if self._marks.home is None or (bearer := bearer_of(found.pid)) is None:
            return ""
        marked = self._marks.name_of(bearer)
        starter = self._processes.get(marked) if marked != name else None
        if starter is None or not starter.start:
            return ""
        is_main = session_of(found.pid) == found.pid and is_produced_by(starter.start, found.pid)
        # Until somebody stands for that one, it may be any of what its start has left in the background.
        is_open = starter.kill == "tree" and bearer.effect == self._effects.get(marked)
        return marked if is_main or (is_open and not self._stands(marked)) else ""

    def _stands(self, name: str) -> bool:
        names = list(self._names.items())  # a thread may ask while another look adds to them
        return any(holder == name and is_alive(one) for one, holder in names)
