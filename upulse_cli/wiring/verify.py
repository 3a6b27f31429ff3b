"""Whether a home's log is what was written: by itself, and by those outside who know its rows.

Every daemon asks soon after its start, in a process of its own: what only some homes need is imported where it is used.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from pulse_adapters.anchor.places import JOURNAL_PLACE, lines_of_file, lines_of_journal
from pulse_adapters.config.included import read_settings
from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.backup.known_rows import another_home, compare_with_backup, last_checkpoint_row
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.named_objects import altered_snapshots
from pulse_adapters.sqlite.verify import VerifyResult, verify
from pulse_core.home import HomeLayout
from pulse_core.model.anchor import Anchor, read_anchors
from pulse_core.model.errors import PulseError
from pulse_core.model.text import are, count
from pulse_core.ports.readers import EventQuery

_PUT_BACK = "put it back; if it was taken away on purpose, the next start of the daemon begins it anew"


def verify_log(home: HomeLayout, anchors: Sequence[str] = ()) -> VerifyResult:
    """How many rows of the log are what was written, and what is wrong with the next. anchors: more places to ask."""
    if not (words := another_home(home)):
        verdict = compared(home, verify(home.events, home.objects, expect=last_checkpoint_row(home)), anchors)
        if not verdict.fault and (words := _backup_fault(home)):
            verdict = verdict._replace(fault=words, fits_itself=True)
        return verdict
    verdict = verify(home.events, home.objects)
    fault = f"{words}; {verdict.fault}" if verdict.fault else words
    return verdict._replace(fault=fault, fits_itself=not verdict.fault)


def note_of_snapshots(home: HomeLayout) -> Sequence[str]:
    """That snapshots of ticks were altered, if any were: the log lacks nothing then."""
    if not (altered := altered_snapshots(home)):
        return ()
    of_ticks = (
        f"{count(len(altered), 'snapshot')} of ticks {are(len(altered))} not what was stored, as {altered[0]}"
    )
    return (f"{of_ticks}: why and replay have less to show of those ticks, and the log lacks nothing",)


def _backup_fault(home: HomeLayout) -> str:
    """Why the backup in this place would not be put back; empty if it would, or a daemon has made a home of it."""
    if home.run.exists() or not (home.path / "backup.json").exists():
        return ""
    from pulse_adapters.sqlite.backup.restore import checked_manifest

    try:
        checked_manifest(home.path, lambda words: None)
    except PulseError as error:
        return str(error)
    return ""


def compared(home: HomeLayout, verdict: VerifyResult, anchors: Sequence[str] = ()) -> VerifyResult:
    """What a reading of the log found, and what others say who know its rows: the last backup, and the anchors."""
    if verdict.fault:
        with suppress(PulseError):
            verdict = verdict._replace(is_accepted=bool(examine(home.events, home.objects).accepted))
        return verdict
    notes, anchored = list[str](), dict[str, int]()
    try:
        for fault, note in chain(compare_with_backup(home), compare_with_anchors(home, anchored, anchors)):
            if fault:
                verdict = verdict._replace(fault=fault, fits_itself=True)
                break
            notes += [note] if note else []
    except PulseError as error:
        notes.append(str(error))
    return verdict._replace(notes=tuple(notes), anchored=anchored)


def last_anchored(home: HomeLayout, host: str) -> int:
    """The last row of the home with this id that an anchor knows; 0 if none does, or none can be read."""
    places = {JOURNAL_PLACE}
    with suppress(PulseError):
        places.update(_named_by_settings(home))
    with suppress(PulseError), SqliteEventReader(home.path) as log:
        places.update(*_named_by_log(log))
    last = 0
    for place in places:
        with suppress(PulseError):
            found = read_anchors(_lines_of(place, home))
            last = max([last, *(one.head.seq for one in found if one.home == host)])
    return last


def compare_with_anchors(
    home: HomeLayout, anchored: dict[str, int], asked: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """What the anchors have against the log, or say of it: those that the settings, the log or the caller names.

    The journal is asked whoever names it: settings and log may be forged with all else in the home.
    anchored: is given the last row that each file knows.
    """
    by_settings: Sequence[str] | None = None
    try:
        by_settings = _named_by_settings(home)
    except PulseError:
        yield (
            "",
            "which anchors the settings name is not known, since they are refused; see: upulse config check",
        )
    with SqliteEventReader(home.path) as log:
        first, recorded = next(log.events(limit=1), None), _named_by_log(log)
        host = first.host if first else ""
        named = dict.fromkeys((*asked, *(by_settings or ()), *chain.from_iterable(recorded)))
        due = {*asked, *_due(home, log, recorded)}
        anchored.update(_rows_in_files(log))
        for place in (*named, *({JOURNAL_PLACE} - named.keys())):
            where = f"the anchor {'in the journal' if place == JOURNAL_PLACE else place}"
            is_named, why = place in named, ""
            try:
                anchors: Iterable[Anchor] = read_anchors(_lines_of(place, home))
                if not is_named:
                    anchors = [one for one in anchors if one.path == str(home.path) or one.home == host]
                    if not anchors:
                        continue
                from pulse_core.app.anchors import compare_anchors  # and with it the models of all events

                known = anchored.get(place, 0)
                found = compare_anchors(
                    log,
                    os.path.realpath(home.path),
                    where,
                    anchors,
                    is_named=is_named,
                    known=known,
                    is_backup=lambda: _is_backup(home, log),
                )
                if place != JOURNAL_PLACE:  # which forgets by rules of its own
                    anchored[place] = found.last
                yield found.fault, found.note
                if not (found.agreed or found.note or found.fault):
                    why = f"{where} knows nothing of this log"
            except PulseError as error:
                why = str(error)
            if why and is_named:
                words = f"{why}: nobody there vouches for the rows"
                yield (f"{words}; {_PUT_BACK}", "") if place in due else ("", words)
    if by_settings is not None and recorded and (gone := sorted(set(recorded[-1]) - set(by_settings))):
        words = "the log says that its head is written to {}, and the settings do not name it: put it back into [anchor]"
        yield f"{words.format(', '.join(gone))}, or if it is not meant any more: upulse daemon reload", ""


def _due(home: HomeLayout, log: SqliteEventReader, recorded: Sequence[tuple[str, ...]]) -> Collection[str]:
    """The files that must know a row: the log says that its head is written there, and it was not begun anew since.

    The journal forgets by rules of its own, and a backup may lie on another machine.
    """
    if not recorded:
        return ()
    from pulse_adapters.sqlite.backup.manifest import NAME
    from pulse_core.app.anchors import NEW_BEGINNINGS

    if (home.path / NAME).exists() or next(log.events(EventQuery(kinds=NEW_BEGINNINGS), limit=1), None):
        return ()
    return set(recorded[-1]) - {JOURNAL_PLACE}


def _is_backup(home: HomeLayout, log: SqliteEventReader) -> bool:
    """Whether a backup lies there, and its log ends where that was made."""
    from pulse_adapters.sqlite.backup.manifest import read_manifest

    with suppress(PulseError):
        return read_manifest(home.path).head == log.head()
    return False


def _rows_in_files(log: SqliteEventReader) -> Mapping[str, int]:
    """The last row that each anchor file knew when the daemon last read the whole log."""
    checked = next(log.events(EventQuery(kinds=("log-verified",)), limit=1, newest_first=True), None)
    data = checked.spelled()["data"] if checked else None
    rows = data.get("anchored") if isinstance(data, dict) else None
    return (
        {place: row for place, row in rows.items() if isinstance(row, int)} if isinstance(rows, dict) else {}
    )


def _lines_of(place: str, home: HomeLayout) -> Iterator[str]:
    return lines_of_journal({0, _owner(home)}) if place == JOURNAL_PLACE else lines_of_file(Path(place))


def _owner(home: HomeLayout) -> int:
    """Whose the home is, or will be: its daemon runs as this user, or as root."""
    try:
        return home.path.stat().st_uid
    except OSError:
        return os.geteuid()


def _named_by_log(log: SqliteEventReader) -> list[tuple[str, ...]]:
    """The places that the log's head was ever written to; the last are those of now."""
    rows = log.events(EventQuery(kinds=("anchor-places",)))
    return [tuple(map(str, (row.spelled()["data"] or {}).get("places", ()))) for row in rows]


def _named_by_settings(home: HomeLayout) -> Sequence[str]:
    """The places that the settings name; raises PulseError for settings with faults."""
    if not read_settings(home.config).data.get("anchor"):
        return ()
    from pulse_adapters.config.file import load_to_start  # the models of all settings, 0.1 s
    from upulse_cli.wiring.anchors import readable_places

    return readable_places(load_to_start(home.config)[0].anchor)
