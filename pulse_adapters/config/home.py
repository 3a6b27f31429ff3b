"""The home directory: resolves its path, checks whether it exists, and creates it.

There may be several on one machine, each by a name of its own: the instance `staging` has `~/.upulse-staging`.
"""

import errno
import os
import re
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

from pulse_adapters.workers.file_systems import answer_in_time
from pulse_adapters.workers.users import expand_home
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.text import is_text

BASE = "~/.upulse"
VARIABLE = "UPULSE_INSTANCE"
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"


class NotUsable(PulseError):
    """The path can't become a Pulse home, and why not."""


class BadInstance(PulseError):
    """A text that is no valid instance name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is no instance's name; write 1 to 32 letters, digits, '-' or '_', the first one no sign, as 'staging'"
        )


def home_called(name: str) -> str:
    """The home of this instance, `~` unexpanded; raises BadInstance."""
    if not re.fullmatch(NAME, name):
        raise BadInstance(name)
    return f"{BASE}-{name}"


def instance_at(home: Path) -> str | None:
    """The instance whose home this is, of any user; None if its name is no instance's."""
    found = re.fullmatch(rf"\.upulse-({NAME})", home.name)
    return found[1] if found else None


def expand_path(text: str) -> Path:
    """The absolute path that a setting names: `~/` is the home of the current user.

    Settings hold paths as written, so that they mean the same to every reader.
    """
    if (path := expand_home(text)).startswith("~/"):
        raise NotUsable(f"{text}: user {os.getuid()} has no home; give an absolute path")
    return Path(_from_the_root(path))


def _from_the_root(path: str) -> str:
    """The path with one slash at its beginning: two stay two for Python, though they are the same place, and name a host
    in the URI of a database."""
    return re.sub("^/+", "/", path)


class Home(HomeLayout):
    """A home on this machine; creating the value accesses no file."""

    __slots__ = ()

    @classmethod
    def resolve(cls, option: str | None = None) -> "Home":
        """Resolve the home: `--home`, or else UPULSE_HOME or UPULSE_INSTANCE, or else `~/.upulse`."""
        if option is not None and not option:
            raise NotUsable("--home is empty; give a directory, or leave it out for ~/.upulse")
        home, name = os.environ.get("UPULSE_HOME", ""), os.environ.get(VARIABLE, "")
        if not option and home and name:
            raise NotUsable(f"UPULSE_HOME and {VARIABLE} both say which home is meant; unset one of them")
        chosen = option or home or (home_called(name) if name else BASE)
        try:
            path = _from_the_root(os.path.abspath(expand_home(chosen)))
            if "\0" in path or not is_text(path):
                raise NotUsable(f"{path!r} is no text in UTF-8, and it is told in the log; give another home")
            return cls(Path(path))
        except FileNotFoundError as error:
            raise NotUsable(
                f"{chosen} is relative to the current directory, and that is deleted; give an absolute path"
            ) from error

    def exists(self) -> bool:
        """Whether there is a home here: its log, or settings beside a run/. Raises NotUsable if it is another's."""
        try:
            return self.events.is_file() or (self.config.exists() and self.run.is_dir())
        except PermissionError as error:
            raise NotUsable(
                f"{self.path} is not for this user ({error.strerror}); use it as its owner, or give another --home"
            ) from error
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise NotUsable(
                f"{self.path} can't be looked at ({error.strerror}), as on a disk that has failed. If a daemon has it "
                f"open, it guards on from memory, and no command reaches it: pgrep -f '{self.path}' shows its pid"
            ) from error

    def close_to_others(self) -> str:
        """Close a home in which others can write, if it is this user's; what was done, empty if nothing had to be.

        Raises NotUsable if it is another user's: what lies there may be anybody's.
        """
        found = self.path.stat()
        if not found.st_mode & 0o022 or os.statvfs(self.path).f_flag & os.ST_RDONLY:
            return ""
        mode = f"{self.path} had mode {stat.S_IMODE(found.st_mode):04o}, so others could write there"
        if found.st_uid != os.geteuid():
            raise NotUsable(f"{mode}; have its owner look at what lies there, and: chmod 700 {self.path}")
        from pulse_adapters.workers.untrusted_paths import make_private  # slow, and seldom needed

        make_private(self.path, self.path)
        return f"{mode}; it has mode 0700 now. See whether what lies there is yours: upulse doctor"

    def create(self) -> None:
        """Create the directory and its run/ for their owner alone; the content of an existing home is kept."""
        try:
            if os.path.lexists(self.path) and not self.exists():
                ours = {
                    path.name
                    for path in (
                        self.config,
                        self.config_parts,
                        self.run,
                        self.objects,
                        self.outputs,
                        self.damaged,
                    )
                }
                if others := sorted(set(os.listdir(self.path)) - ours):
                    raise NotUsable(
                        f"{self.path} is no Pulse home and not empty (there is {others[0]!r}); "
                        "give a new directory or an empty one"
                    )
            for directory in (self.path, self.run):
                directory.mkdir(mode=0o700, parents=directory is self.path, exist_ok=True)
                if stat.S_IMODE(directory.stat().st_mode) != 0o700:
                    directory.chmod(0o700)
        except (FileExistsError, NotADirectoryError) as error:
            raise NotUsable(f"{error.filename} is a file; a Pulse home needs a directory") from error
        except OSError as error:
            raise NotUsable(f"{self.path} can't become a Pulse home: {error.strerror}") from error


def refuse_strangers(home: Home) -> None:
    """Root does not run what another user's settings say: that user could have root start anything."""
    owner = os.stat(home.path).st_uid
    if os.geteuid() != owner:
        raise PulseError(f"{home.path} belongs to user {owner}; start its daemon as that user")
    refuse_owners(
        owner, home.config, home.config_parts, *home.config_parts.glob("*.toml"), home.run, home.events
    )
    engine = (home.path / "engine", home.path / "staging")
    with suppress(OSError):  # without an engine that can't be looked at the daemon guards all the same
        answer_in_time(str(engine[0]), partial(refuse_owners, owner, *engine))


def refuse_owners(owner: int, *paths: Path) -> None:
    """Raise PulseError for what belongs to neither root nor this user."""
    for path in paths:
        with suppress(FileNotFoundError):
            if (other := os.lstat(path).st_uid) not in (0, owner):
                raise PulseError(
                    f"{path} belongs to user {other}, whose home this is not; see: upulse doctor"
                )
