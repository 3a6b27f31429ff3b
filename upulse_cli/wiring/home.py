"""A home over its real adapters, for the application; and the settings in a file.

Imported by every command, so what only some of them need is imported when it is asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.daemon_client import SocketDaemonClient, own_run_socket
from pulse_adapters.workers.file_systems import answer_in_time
from pulse_core.app.context import HomeContext, LoadedSettings
from pulse_core.home import HomeLayout
from pulse_core.model.errors import NoHome
from pulse_core.model.event import Checkpoint
from upulse_cli.output import fold_progress, say

if TYPE_CHECKING:
    from pathlib import Path

    from pulse_core.model.home_status import HomeStatus
    from pulse_core.model.json_answers import HelperCostJson
    from pulse_core.ports.readers import EventReader, ObjectReader, VitalsReader
    from pulse_core.settings.settings import Settings


def meant_home(option: str | None) -> Home:
    """The home that `--home` means, or the environment, whether there is one or not."""
    return Home.resolve(option)


def instance_home(name: str) -> str:
    """The home of the instance of this name; raises PulseError if that is no name of one."""
    from pulse_adapters.config.home import home_called

    return home_called(name)


def main_commit(home: HomeLayout) -> str:
    """The commit that the engine's main stands at, read from its files without git; empty if that can't be told.

    Raises NoAnswer.
    """
    from pulse_adapters.git.git_files import read_main

    return answer_in_time(str(home.path / "engine"), lambda: read_main(home.path))


def found_home(option: str | None) -> Home:
    """The home that `--home` means, or the environment; raises NoHome if there is none, NotUsable if others write there."""
    home = Home.resolve(option)
    if own_run_socket(home.path):
        return home
    if not home.exists():
        raise NoHome(str(home.path))
    if mended := home.close_to_others():
        say(mended)
    return home


def make_home(home: Home, demo: bool) -> HomeContext:
    """Make a home with settings and an empty log, or what is missing of it."""
    from upulse_cli.wiring.offline import make_log, write_settings

    home.create()
    write_settings(home, demo)
    make_log(context := home_context(home), look=True)
    return context


def found_or_new_home(option: str | None) -> HomeContext:
    """The home that `--home` means, with a log; a new one if there is none."""
    from upulse_cli.wiring.offline import make_log

    try:
        make_log(context := home_context(found_home(option)))
    except NoHome:
        context = make_home(meant_home(option), demo=False)
    return context


def child_costs(daemon: int) -> "Iterator[HelperCostJson]":
    """What each child process of a daemon costs."""
    from pulse_adapters.host.system_watcher import child_costs as costs

    return costs(daemon)


def home_context(layout: HomeLayout) -> HomeContext:
    """This home, with nothing opened yet."""

    def settings() -> LoadedSettings:
        from pulse_adapters.config.file import load_to_start

        return LoadedSettings(*load_to_start(layout.config))

    is_compared = are_vitals_read = False

    def events() -> "AbstractContextManager[EventReader]":
        from pulse_adapters.sqlite.event_reader import SqliteEventReader
        from pulse_adapters.sqlite.lost_end import lost_end

        nonlocal is_compared
        if not is_compared and (words := lost_end(layout)):
            say(words)
        is_compared = True  # once is enough for a command
        return SqliteEventReader(layout.path)

    def vitals() -> "AbstractContextManager[VitalsReader]":
        from pulse_adapters.sqlite.connect import lost_frames
        from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader

        nonlocal are_vitals_read
        if not are_vitals_read and (
            words := lost_frames(layout.vitals)
        ):  # before a reader makes the -shm anew
            say(words)
        are_vitals_read = True
        return SqliteVitalsReader(layout.path)

    def checkpoints() -> Mapping[str, Checkpoint]:
        from pulse_adapters.sqlite.checkpoints import read_checkpoints

        return read_checkpoints(layout.state)

    def objects() -> "ObjectReader":
        from pulse_adapters.objects.files import FileObjects

        return FileObjects(layout.objects)

    def new_id() -> str:
        from uuid_utils import uuid7

        return str(uuid7())

    def offline(
        context: HomeContext, drafts: Sequence[Mapping[str, Any]]
    ) -> Sequence[tuple[Mapping[str, Any], bool]]:
        from upulse_cli.wiring.offline import append_offline

        return append_offline(context, drafts)

    return HomeContext(
        layout=layout,
        clock=SystemClock(),
        settings=settings,
        events=events,
        vitals=vitals,
        checkpoints=checkpoints,
        objects=objects,
        daemon=SocketDaemonClient(layout, say),
        new_id=new_id,
        append_offline=offline,
        progress=fold_progress,
    )


def settings_in(path: "Path") -> "Settings":
    """The settings; raises SettingsRefused with every fault, or NoAnswer."""
    from pulse_adapters.config.file import load

    return answer_in_time(str(path), lambda: load(path))


def settings_text(settings: "Settings") -> str:
    """The settings as TOML, defaults filled in."""
    from pulse_adapters.config.toml_writer import settings_as_toml

    return settings_as_toml(settings)


def doubtful_matches_now(settings: "Settings") -> Mapping[str, str]:
    """By name, in words, the guarded processes that can't be started, or of which nobody can tell which one it is."""
    ways = ("start", "match", "pid_file", "tcp", "systemd_unit")
    if not any(getattr(process, way) for process in settings.process for way in ways):
        return {}
    import asyncio

    from pulse_adapters.host.settings_doubts import doubts_of

    return asyncio.run(doubts_of(settings.process))


def doubts_now(layout: HomeLayout, settings: "Settings") -> Mapping[str, str]:
    """By name, in words, the guarded processes that are doubtful on this machine, and what capabilities say of theirs."""
    from pulse_core.capabilities import capability_modules

    found = dict(doubtful_matches_now(settings))
    with home_context(layout).vitals() as vitals:
        samples = vitals.last_samples()
    for module in capability_modules("pulse_adapters"):
        if hasattr(module, "doubts"):
            found |= module.doubts(layout.path, settings, samples)
    return found


def stopped_status(home: HomeContext, before: "HomeStatus") -> "HomeStatus":
    """The status with the processes that live after a daemon was stopped. before: what it had said until then."""
    from pulse_adapters.workers.proc import is_alive
    from pulse_core.app.status import status_at_stop

    return status_at_stop(home, before, is_alive)


def unguarded_now(home: HomeContext, settings: "Settings") -> Iterator[str]:
    """A sentence for each live process that Pulse started for a name that these settings neither have nor rename."""
    from pulse_adapters.host.settings_doubts import left_unguarded
    from pulse_core.app.state import current_state
    from pulse_core.model.errors import PulseError

    try:
        histories = current_state(home).processes.of
    except PulseError:
        return  # the log can't be read, which others say
    for name, pid in left_unguarded(settings.process, histories, home.clock.now().boot).items():
        yield f"{name} is not guarded any more; process {pid} goes on, and is ended by: kill {pid}"


def changed_now(home: HomeContext, settings: "Settings") -> Mapping[str, str]:
    """By name, in words, the live processes that have what these settings give a start only from their next start on."""
    from pulse_adapters.host.settings_doubts import changed_since_start
    from pulse_core.app.state import current_state
    from pulse_core.model.errors import PulseError

    try:
        histories = current_state(home).processes.of
    except PulseError:
        return {}  # the log can't be read, which others say
    return changed_since_start(settings.process, histories, home.clock.now().boot)


def checked_settings(path: "Path") -> "Settings":
    """The settings, once Apprise too has understood the addresses; raises SettingsRefused."""
    settings = settings_in(path)
    if not settings.notice_urls:
        return settings
    from pulse_adapters.config.file import faults_found_later
    from pulse_adapters.notify.addresses import unusable_addresses  # Apprise is slow to import

    if unusable := unusable_addresses(settings):
        raise faults_found_later(path, unusable)
    return settings
