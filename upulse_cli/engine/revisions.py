"""The engine's repository as the daemon uses it: git in a child of its own."""

from dataclasses import dataclass

from pulse_adapters.git.asking import GitChild
from pulse_adapters.git.author import PULSE
from pulse_core.ports import Revision


@dataclass(frozen=True)
class GitRevisions:
    """Implements `Revisions`."""

    git: GitChild

    async def head(self) -> str:
        """The commit of `main`."""
        return await self.git.head()

    async def ensure(self, commit: str) -> Revision:
        """The commit's immutable export, as it was committed; git is not asked for what is there."""
        laid = await self.git.ensure(commit)
        return Revision(commit, str(laid.path), laid.altered)

    async def point_main(self, commit: str, expected: str) -> None:
        """Let `main`, and the files that follow it, be this commit."""
        await self.git.point_main(commit, expected)

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        """A new commit with the files of an earlier one, and the branch that keeps the one that is rejected."""
        message = f"Go back to {to[:12]}: {why or 'somebody asked'}"
        back = await self.git.going_back(to, rejected, message, PULSE)
        return Revision(back.commit, str(back.path)), back.branch
