"""The files of one gateway. What is read of them is bounded; they must be this user's own, and no links."""

import hashlib
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

from pulse_adapters.workers.plain_file import NotPlain, open_plain, replace_plain
from pulse_adapters.workers.users import expand_home
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json
from pulse_core.openclaw.settings import OpenClawSettings
from pulse_core.ports.executor import GivenUp

LARGEST, MOST_FILES = 1 << 20, 10_000
"""Bytes of a config; files of sessions that are counted."""


class GatewayFiles:
    """The config of a gateway, and its sessions. Blocks: for threads; raises PulseError.

    Good configs are files of the home, named by their hash, for the owner alone: a config holds tokens.
    """

    def __init__(self, home: HomeLayout, gateway: OpenClawSettings) -> None:
        folder = Path(expand_home(gateway.folder))
        self._config = Path(expand_home(gateway.config)) if gateway.config else folder / "openclaw.json"
        self._agents, self._most = folder / "agents", gateway.keep
        self._kept = home.path / "openclaw" / gateway.process

    def look(self) -> dict[str, Json]:
        """What the watcher's sample says of it."""
        try:
            config = self._read()
            changed = (self._config if config else self._config.parent).stat().st_ctime
            age_us = max(0, round((time.time() - changed) * 1e6))
            return {"config": _hash_of(config), "age_us": age_us, "kept": self._hashes(), **self._sessions()}
        except OSError as error:
            raise PulseError(f"{self._config} can't be read: {error.strerror}") from error

    def keep(self, config: str) -> None:
        """Keep the config, if it still has this hash, and no more than the newest ones."""
        try:
            if _hash_of(data := self._read()) == config:
                self._kept.mkdir(0o700, parents=True, exist_ok=True)
                replace_plain(self._kept / config, data, 0o600)
            for old in self._hashes()[self._most :]:
                (self._kept / old).unlink()
        except OSError as error:
            raise PulseError(f"{self._config} can't be kept: {error.strerror}") from error

    def restore(self, bad: str, good: str) -> dict[str, Json]:
        """Put the good one in the place of the bad one, which stays beside it; says where."""
        try:
            now, data = self._read(), (self._kept / good).read_bytes()
            if _hash_of(now) == good:
                return {"already": True}
            if _hash_of(now) != bad:
                raise GivenUp(f"{self._config} was changed meanwhile")
            if _hash_of(data) != good:
                raise GivenUp(f"the config {good[:12]} that was kept is damaged")
            aside = self._config.with_name(f"{self._config.name}.rejected-{bad[:12]}")
            if bad:
                with suppress(FileExistsError):
                    os.link(self._config, aside)
            replace_plain(self._config, data, stat.S_IMODE(self._config.stat().st_mode) if bad else 0o600)
        except OSError as error:
            raise PulseError(f"{self._config} can't be put back: {error.strerror}") from error
        return {"aside": str(aside) if bad else ""}

    def _read(self) -> bytes:
        """The config; nothing if there is none."""
        try:
            handle = open_plain(self._config)
        except FileNotFoundError:
            return b""
        except NotPlain as error:
            raise PulseError(f"{self._config}: {error.strerror}") from error
        with open(handle, "rb") as file:
            found, folder = os.fstat(handle), self._config.parent.stat()
            if {found.st_uid, folder.st_uid} != {os.geteuid()}:
                raise PulseError(f"{self._config} is no file of the user Pulse runs as")
            if len(data := file.read(LARGEST + 1)) > LARGEST:
                raise PulseError(f"{self._config} is no config: it has more than {LARGEST} bytes")
        return data

    def _hashes(self) -> list[Json]:
        """Those of the good ones, the newest first."""
        with suppress(FileNotFoundError):
            made = {one.name: one.stat().st_mtime_ns for one in os.scandir(self._kept)}
            known = (name for name in made if re.fullmatch("[0-9a-f]{64}", name))
            return sorted(known, key=lambda name: made[name], reverse=True)
        return []

    def _sessions(self) -> dict[str, Json]:
        """How many agents have sessions, in how many files, of how many bytes; of at most MOST_FILES files."""
        agents, files, size = 0, 0, 0
        for at, folders, names in os.walk(self._agents):
            agents = len(folders) if at == str(self._agents) else agents
            for name in names:
                with suppress(OSError):
                    size += os.lstat(os.path.join(at, name)).st_size
                files += 1
            if files >= MOST_FILES:
                break
        return {"agents": agents, "session_files": files, "session_bytes": size}


def _hash_of(config: bytes) -> str:
    return hashlib.sha256(config).hexdigest() if config else ""
