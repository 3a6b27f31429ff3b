"""The last step of a restore: decided by one file, it can only be finished, by whoever comes next."""

import json
import os
import shutil
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pulse_adapters.sqlite.synced_files import sync_directory
from pulse_adapters.workers.plain_file import read_plain
from pulse_core.app.backup import Restored
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.payload import describe

STORES = ("vitals.db", "events.db")
"""What is exchanged, each with what SQLite keeps beside it; the log last."""

ADDED = ("config.toml", "conf.d", "engine", "staging")
"""What is put there only if there is none."""

_LARGEST = 1 << 20


def anything_in(home: HomeLayout) -> bool:
    """Whether there is something that has to be moved aside."""
    return any(path for name in (*STORES, home.state.name) for path in home.path.glob(f"{name}*"))


def finish_decided(home: HomeLayout) -> Restored | None:
    """Carry out what was decided, from wherever it was broken off; what is to be said of it. None if nothing was.

    The caller holds the home's lock. Raises PulseError if that can't be done now.
    """
    if not home.restore_plan.exists():
        return None
    try:
        plan = TypeAdapter(Restored).validate_python(json.loads(read_plain(home.restore_plan, _LARGEST)))
        aside = _aside(home, plan)
    except (OSError, ValueError, RecursionError) as error:
        words = describe(error) if isinstance(error, ValidationError) else error
        raise Damaged(
            f"{home.restore_plan} can't be read ({words}); look into {home.restoring}, and put things right by hand"
        ) from error
    try:
        _finish(home, aside)
    except OSError as error:
        raise PulseError(
            f"a restore is decided and can't be finished: {error.filename}: {error.strerror}; mend that, then again:"
            " upulse doctor --repair"
        ) from error
    return plan


def _aside(home: HomeLayout, plan: Restored) -> Path:
    """Where what is there is kept. Raises ValueError for a plan that no restore has made: it may lead elsewhere."""
    places = [home.restoring]
    if plan.kept_at:  # else there is nothing to be kept
        places += [home.damaged, home.damaged / Path(plan.kept_at).name]
        if not places[-1].name.isdigit():
            raise ValueError(f"{plan.kept_at} is no place where restores keep what was there")
    for place in places:
        # It may lie on another disk, if whoever mends has put it there: root follows nobody else's link.
        is_own = place == home.damaged and place.lstat().st_uid == os.geteuid()
        if (place.is_symlink() and not is_own) or not place.is_dir():
            raise ValueError(f"{place} is no folder")
    for name in STORES:
        staged = home.restoring / name
        if os.path.lexists(staged) and (staged.is_symlink() or not staged.is_file()):
            raise ValueError(f"{staged} is no plain file")
    return places[-1]


def _finish(home: HomeLayout, aside: Path) -> None:
    _move_aside(home.path, aside, f"{home.state.name}*")
    for name in STORES:
        if (home.restoring / name).exists():
            _move_aside(home.path, aside, f"{name}-*")
            _move_aside(home.path, aside, f"{name}.saved*")
            if (home.path / name).is_dir():
                _move_aside(home.path, aside, name)
            elif (home.path / name).exists():  # there is always one under its name
                link_or_copy(home.path / name, aside / name)
            os.replace(home.restoring / name, home.path / name)
    for name in (*ADDED, *(log.name for log in home.shadow_logs)):
        if (home.restoring / name).exists() and not os.path.lexists(home.path / name):
            os.rename(home.restoring / name, home.path / name)
    for directory in (aside, home.path):
        sync_directory(directory)
    home.restore_plan.unlink()
    sync_directory(home.restoring)
    shutil.rmtree(home.restoring, ignore_errors=True)


def _move_aside(directory: Path, aside: Path, pattern: str) -> None:
    for path in directory.glob(pattern):
        if path.is_dir() and not path.is_symlink():  # somebody's own, which has no second name
            os.rename(path, aside / path.name)
            continue
        link_or_copy(path, aside / path.name)
        path.unlink()


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file; or a whole copy, where that can't be, as on another file system. A link stays one."""
    try:
        if source.is_symlink():
            os.symlink(os.path.realpath(source), target)
        else:
            os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        copy = target.with_name(f".{target.name}.unfinished")
        shutil.copy2(source, copy)
        copy.replace(target)
