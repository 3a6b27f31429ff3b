"""Groups of settings that capabilities add to the root."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

from pydantic import BaseModel

from pulse_core.settings.cross_checks import Disagreement
from pulse_core.settings.logs import LogSettings
from pulse_core.settings.processes import ProcessSettings

T = TypeVar("T")


class NamedTables(NamedTuple):
    """The core's own tables, which others name: of a log, just its path and its unit may be known."""

    process: Sequence[ProcessSettings]
    log: Sequence[LogSettings] = ()


@dataclass(frozen=True, eq=False)
class SettingsGroup(Generic[T]):
    """A group `[name]`, or many of them, `[[name]]`; type and default: of the root's field.

    agree: what is wrong between many of them, or between them and the core's tables. It must bear tables of which just
    the keys in `outline` are known, with the values given there for those that are missing.
    """

    name: str
    type: Any
    default: T
    agree: Callable[[Sequence[Any], NamedTables], Iterable[Disagreement]] = lambda values, tables: ()
    outline: Mapping[str, Any] = field(default_factory=dict)

    def of(self, settings: BaseModel) -> T:
        """The value of this group."""
        return cast(T, getattr(settings, self.name, self.default))
