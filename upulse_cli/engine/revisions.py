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
        """The commit's immutable export."""
        return Revision(commit, str(await self.git.ensure(commit)))

    async def point_main(self, commit: str, expected: str) -> None:
        """Let `main`, and the files that follow it, be this commit."""
        await self.git.point_main(commit, expected)

    async def reverting(self, to: str, why: str) -> str:
        """A new commit with the files of an earlier one."""
        return await self.git.reverting(to, f"Go back to {to[:12]}: {why or 'somebody asked'}", PULSE)

    async def keep_branch(self, name: str, commit: str) -> str:
        """Keep a commit under a name."""
        return await self.git.keep_branch(name, commit)
