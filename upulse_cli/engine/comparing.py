"""Two revisions over the same recorded ticks."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import Revisions
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.ports import Revision
from upulse_cli.engine.plugins import found_plugins
from upulse_cli.engine.replaying import Difference, Progress, Replay, differences, replayed

STAGING = "staging"


class Compared(NamedTuple):
    """What the one wished, what the other did, where they differ, and what is not as it was then."""

    new: Replay
    old: Replay
    differences: Sequence[Difference]
    caveats: Sequence[str]

    def told(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "engine": self.new.told(),
            "against": self.old.told(),
            "differences": [{"only": one.only, **one.wish._asdict()} for one in self.differences],
            "caveats": list(self.caveats),
        }


def compared(home: Home, since: int, engine: str, against: str, progress: Progress) -> Compared:
    """Replay both since a moment (UTC microseconds)."""
    revisions = [revision_called(home, word) for word in (engine, against)]
    (new, old), caveats = asyncio.run(
        replayed(home, ChildHosts(plugins=found_plugins()), since, revisions, progress)
    )
    return Compared(new, old, differences(old, new), caveats)


def revision_called(home: Home, word: str) -> Revision:
    """The revision that a word means; `staging` as it lies there, with what is not committed."""
    repository = Repository(home.path)
    if word == STAGING:
        repository.mend()
        return Revision(STAGING, str(repository.staging().path))
    commit = repository.resolve(word)
    return Revision(commit, str(Revisions(home.path).ensure(commit)))
