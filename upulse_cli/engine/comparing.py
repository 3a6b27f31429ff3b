"""Two accounts of the same recorded ticks: of two revisions, or of one and what really happened."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import RevisionStore
from pulse_core.model.errors import PulseError
from pulse_core.ports import Revision
from upulse_cli.engine.courses import IN_FORCE
from upulse_cli.engine.replaying import RECORDED, Progress, Replay, replayed
from upulse_cli.engine.wishes import Difference, differences
from upulse_cli.wiring.engine import rule_hosts

STAGING = "staging"


class Compared(NamedTuple):
    """What the one wished, what the other did, where they differ, and what is not as it was then."""

    new: Replay
    old: Replay
    differences: Sequence[Difference]
    caveats: Sequence[str]

    @property
    def is_alike(self) -> bool:
        """Whether they wish the same, and the one does nothing wrong that the other does not."""
        failing = self.new.faults.keys() - self.old.faults.keys() if self.old.revision != RECORDED else ()
        return not self.differences and not failing

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
    if engine == RECORDED.commit:
        raise PulseError("what is recorded is no engine; name it with --against recorded")
    revisions = [account_called(home, engine), account_called(home, against)]
    (new, old), caveats = asyncio.run(replayed(home, rule_hosts(home), since, revisions, progress))
    return Compared(new, old, differences(old.wishes, new.wishes), caveats)


def account_called(home: Home, word: str) -> Revision:
    """The revision that a word means, or whichever was in force, or what was really emitted."""
    return next((one for one in (RECORDED, IN_FORCE) if word == one.commit), None) or revision_called(
        home, word
    )


def revision_called(home: Home, word: str) -> Revision:
    """The revision that a word means; `staging` as it lies there, with what is not committed."""
    repository = Repository(home.path)
    if word == STAGING:
        repository.mend()
        return Revision(STAGING, str(repository.staging().path))
    commit = repository.resolve(word)
    return Revision(commit, str(RevisionStore(home.path).ensure(commit)))
