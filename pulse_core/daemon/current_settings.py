"""The settings in force, and how new ones come into force: whole, or not at all."""

from collections.abc import Callable
from dataclasses import replace

from pulse_core.model import errors
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import SettingsLoaded, SettingsRejected
from pulse_core.settings import Settings


class CurrentSettings:
    """Calling it returns the settings in force. `load` reads them again; raises SettingsRefused with every fault."""

    def __init__(self, load: Callable[[], Settings]) -> None:
        self._load = load
        self._settings = load()

    def __call__(self) -> Settings:
        return self._settings

    def loaded(self) -> Draft:
        """The draft that says which settings are in force."""
        names = tuple(process.name for process in self._settings.process)
        return Draft(SettingsLoaded(digest=self._settings.digest, processes=names))

    def reload(self, request: Event) -> Draft:
        """Read the settings again; the answer to the request. If they are refused, the old ones stay."""
        try:
            self._settings = self._load()
        except errors.SettingsRefused as refused:
            return Draft(SettingsRejected(faults=refused.faults), cause=request.id)
        return replace(self.loaded(), cause=request.id)
