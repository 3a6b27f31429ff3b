"""Where the head of a home's log is written down outside of it, and whether that agrees with the log."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pulse_adapters.anchor.places import add_to_file, add_to_journal, lines_of_file, lines_of_journal
from pulse_adapters.config.file import load_to_start
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.notify.addresses import resolve_url
from pulse_adapters.notify.executor import ChildTransport
from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.backup.known_rows import compare_with_log, last_backup
from pulse_adapters.sqlite.backup.manifest import read_manifest
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.verify import VerifyResult
from pulse_core.app.anchors import compare_anchors
from pulse_core.daemon import CurrentSettings
from pulse_core.daemon.anchoring import Place, write_anchors
from pulse_core.daemon.services import Failed
from pulse_core.home import HomeLayout
from pulse_core.model.anchor import Anchor, read_anchors
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import iso
from pulse_core.ports.clock import Clock
from pulse_core.ports.transport import OutgoingMessage
from pulse_core.settings.telemetry import AnchorSettings

COMMAND_TIMEOUT = 60.0


def anchoring(
    home: HomeLayout,
    log: SqliteEventLog,
    clock: Clock,
    spawner: Spawner,
    settings: CurrentSettings,
    failed: Failed,
) -> Callable[[AnchorSettings], Awaitable[None]]:
    """What writes the log's head down for ever, as these settings say."""

    def newest() -> Anchor:
        return Anchor(log.host, str(home.path), log.head, clock.now().at)

    async def command(wanted: AnchorSettings, line: str) -> None:
        done = await spawner.run(
            wanted.command, cwd=None, env={"PULSE_ANCHOR": line}, timeout=COMMAND_TIMEOUT, marker="anchor"
        )
        if done.exit:
            raise PulseError(
                f"{wanted.command[0]} ended with status {done.exit}: {done.output.strip()[-200:]}"
            )

    async def notice(line: str) -> None:
        urls = [url for name in settings().notify.urls if (url := resolve_url(name))]
        if not urls:
            raise PulseError("[notify] urls has no address that it could go to")
        told = [OutgoingMessage(url, "The head of the log", line, good=True) for url in urls]
        if wrong := [why for why in await ChildTransport().deliver(told) if why]:
            raise PulseError(f"it was not delivered: {wrong[0]}")

    def places(wanted: AnchorSettings) -> Mapping[str, Place]:
        found: dict[str, Place] = {}
        if wanted.file:
            path = outside(home, Path(wanted.file))
            found[wanted.file] = lambda line: asyncio.to_thread(add_to_file, path(), line)
        if wanted.journal:
            found["the journal"] = lambda line: asyncio.to_thread(add_to_journal, line)
        if wanted.command:
            found["the command"] = lambda line: command(wanted, line)
        if wanted.notice:
            found["the notice"] = notice
        return found

    return lambda wanted: write_anchors(newest, places(wanted), wanted.every, failed)


def outside(home: HomeLayout, path: Path) -> Callable[[], Path]:
    """The path; raises PulseError if it leads into the home, with which it would be forged."""

    def checked() -> Path:
        if path.resolve().is_relative_to(home.path.resolve()):
            raise PulseError(f"{path} lies in the home that it is to vouch for; put it elsewhere")
        return path

    return checked


def compared(home: HomeLayout, verdict: VerifyResult) -> VerifyResult:
    """What a reading of the log found, and what others say who know its rows: the last backup, and the anchors."""
    if verdict.fault:
        with suppress(PulseError):
            verdict = verdict._replace(is_accepted=bool(examine(home.events, home.objects).accepted))
        return verdict
    notes = list[str]()
    try:
        for fault, note in (*_backup(home), *_anchors(home)):
            if fault:
                return verdict._replace(fault=fault, notes=tuple(notes), fits_itself=True)
            notes += [note] if note else []
    except PulseError as error:
        notes.append(str(error))
    return verdict._replace(notes=tuple(notes))


def _backup(home: HomeLayout) -> Iterable[tuple[str, str]]:
    if (last := last_backup(home)) is None:
        return
    rows = {last.row: last.made_at}
    with suppress(PulseError, OSError), SqliteEventReader(home.path) as log:
        manifest, newest = read_manifest(Path(last.path)), next(log.events(limit=1, newest_first=True), None)
        if newest and manifest.host == newest.host:
            rows[manifest.head] = manifest.made_at
    for row, made_at in rows.items():
        who = f"the backup of {iso(made_at)} in {last.path}"
        agrees, words = compare_with_log(home, row, who, made_at)
        yield ("", words) if agrees else (words, "")


def last_anchored(home: HomeLayout, host: str) -> int:
    """The last row of the home with this id that an anchor knows; 0 if none does, or none can be read."""
    last = 0
    with suppress(PulseError):
        for lines in _places(home).values():
            with suppress(PulseError):
                last = max([last, *(one.head.seq for one in read_anchors(lines()) if one.home == host)])
    return last


def _anchors(home: HomeLayout) -> Iterable[tuple[str, str]]:
    places = _places(home)
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
    wanted = load_to_start(home.config)[0].anchor
    places: dict[str, Callable[[], Iterable[str]]] = {}
    if wanted.file:
        path = Path(wanted.file)
        places[f"the anchor {path}"] = lambda: lines_of_file(path)
    if wanted.journal:
        places["the anchor in the journal"] = lines_of_journal
    return places
