"""Whether a home's log is what was written: by itself, and by those outside who know its rows.

Every daemon asks soon after its start, in a process of its own: what only some homes need is imported where it is used.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pulse_adapters.anchor.places import lines_of_file, lines_of_journal
from pulse_adapters.config.included import read_settings
from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.backup.known_rows import compare_with_backup, last_checkpoint_row
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.verify import VerifyResult, verify
from pulse_core.home import HomeLayout
from pulse_core.model.anchor import read_anchors
from pulse_core.model.errors import PulseError


def verify_log(home: HomeLayout) -> VerifyResult:
    """How many rows of the log are what was written, and what is wrong with the next."""
    return compared(home, verify(home.events, home.objects, expect=last_checkpoint_row(home)))


def compared(home: HomeLayout, verdict: VerifyResult) -> VerifyResult:
    """What a reading of the log found, and what others say who know its rows: the last backup, and the anchors."""
    if verdict.fault:
        with suppress(PulseError):
            verdict = verdict._replace(is_accepted=bool(examine(home.events, home.objects).accepted))
        return verdict
    notes = list[str]()
    try:
        for fault, note in (*compare_with_backup(home), *_anchors(home)):
            if fault:
                return verdict._replace(fault=fault, notes=tuple(notes), fits_itself=True)
            notes += [note] if note else []
    except PulseError as error:
        notes.append(str(error))
    return verdict._replace(notes=tuple(notes))


def last_anchored(home: HomeLayout, host: str) -> int:
    """The last row of the home with this id that an anchor knows; 0 if none does, or none can be read."""
    last = 0
    with suppress(PulseError):
        for lines in _places(home).values():
            with suppress(PulseError):
                last = max([last, *(one.head.seq for one in read_anchors(lines()) if one.home == host)])
    return last


def _anchors(home: HomeLayout) -> Iterable[tuple[str, str]]:
    if not (places := _places(home)):
        return
    from pulse_core.app.anchors import compare_anchors

    with SqliteEventReader(home.path) as log:
        for name, lines in places.items():
            try:
                found = compare_anchors(log, str(home.path), name, read_anchors(lines()))
            except PulseError as error:
                yield "", str(error)
                continue
            silent = "" if found.agreed or found.note or found.fault else f"{name} knows nothing of this log"
            yield found.fault, found.note or silent


def _places(home: HomeLayout) -> Mapping[str, Callable[[], Iterable[str]]]:
    """What reads the anchors that the settings name, by where they are; raises PulseError for settings with faults."""
    if not read_settings(home.config).data.get("anchor"):
        return {}
    from pulse_adapters.config.file import load_to_start  # the models of all settings, 0.1 s

    wanted = load_to_start(home.config)[0].anchor
    places: dict[str, Callable[[], Iterable[str]]] = {}
    if wanted.file:
        path = Path(wanted.file)
        places[f"the anchor {path}"] = lambda: lines_of_file(path)
    if wanted.journal:
        places["the anchor in the journal"] = lines_of_journal
    return places
