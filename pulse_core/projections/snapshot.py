"""One immutable view of everything, taken for a tick."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Window
from pulse_core.projections.conditions import Conditions
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects
from pulse_core.projections.engine import Engine
from pulse_core.projections.logs import Logs
from pulse_core.projections.notices import Notices
from pulse_core.projections.processes import ProcessHistory
from pulse_core.projections.state import Projection, State, T
from pulse_core.settings import Settings

NO_WINDOW = Window()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What rules see: the moment, the settings, the last minute of every watcher, and the projections of the log."""

    tick: int
    now: Moment
    settings: Settings = field(default_factory=Settings)
    windows: Mapping[str, Window] = field(default_factory=dict)
    state: State = field(default_factory=State)
    own: Mapping[str, Any] = field(default_factory=dict)
    """The values of the engine's own projections by name; only the engine's rules see them."""

    @property
    def effects(self) -> Effects:
        """Open effects and counts."""
        return self.state.effects

    @property
    def control(self) -> Control:
        """Paused or not."""
        return self.state.control

    @property
    def conditions(self) -> Conditions:
        """What is wrong with the machine at this moment."""
        return self.state.conditions

    @property
    def notices(self) -> Notices:
        """The notices that were sent."""
        return self.state.notices

    @property
    def silences(self) -> Any:
        """The silences; authors used this name before capabilities had projections of their own."""
        return self.state.parts["silences"]

    @property
    def logs(self) -> Logs:
        """Matching lines of the followed logs."""
        return self.state.logs

    @property
    def engine(self) -> Engine:
        """The engine's commit and its failures."""
        return self.state.engine

    def of(self, projection: Projection[T]) -> T:
        """The value of a capability's projection, with its type."""
        return self.state.of(projection)

    def process(self, name: str) -> ProcessHistory:
        """The recorded history of a guarded process."""
        return self.state.processes[name]

    def window(self, key: str) -> Window:
        """The last minute of a watcher's samples; empty if there are none."""
        return self.windows.get(key, NO_WINDOW)

    def samples(self, *keys: str) -> tuple[int, ...]:
        """Ids of the newest samples of these watchers (of all, if none is named)."""
        windows = (self.window(key) for key in keys) if keys else self.windows.values()
        return tuple(window.last.id for window in windows if window.last)
