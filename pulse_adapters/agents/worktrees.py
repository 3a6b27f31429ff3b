"""Git worktrees of tasks: one for each, on a branch of its own, removed only when nothing in it could be lost."""

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from pulse_adapters.workers.owned_git import OwnedGit
from pulse_core.agents.run_files import Workspace
from pulse_core.model.errors import PulseError
from pulse_core.model.text import are, count
from pulse_core.tasks.task import Project

SLUG, COMMITS = 40, 20
"""Most characters of the title in a branch's name, and commits of a branch that are told, the newest."""


def branch_of(task: str, title: str) -> str:
    """The branch of a task."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower())[:SLUG].strip("-")
    return f"feat/{task}-{slug}".rstrip("-")


class Worktree:
    """The worktree of a task at a path. Blocks: for threads; raises PulseError. `close` ends what it runs."""

    def __init__(self, project: Project, path: Path) -> None:
        self._repository, self._base, self._path = Path(project.repository or path), project.base, path
        self._git = OwnedGit(self._repository, path)
        self.close = self._git.close

    def make(self, task: str, title: str) -> Workspace:
        """The worktree, with whatever lies in it, or a new one.

        It is made beside its place and moved there, so that what a crash leaves there is nobody's work.
        """
        if self._is_whole():
            return Workspace(str(self._path), self._git("rev-parse", "--abbrev-ref", "HEAD", at=self._path))
        if self._path.exists():
            raise PulseError(f"{self._path} is in the way of the task's worktree; move it elsewhere")
        branch, new = branch_of(task, title), self._path.with_name(f"{self._path.name}.new")
        if new.exists():
            self._git("worktree", "remove", "--force", "--force", str(new), check=False)
        self._git("worktree", "prune")
        if self._has(f"refs/heads/{branch}"):
            self._git("worktree", "add", "--force", "--force", str(new), branch)
        else:
            made = ("--no-track", "-b", branch, str(new), self._start())
            self._git("worktree", "add", "--force", "--force", *made)
            for name, value in (("remote", "origin"), ("merge", f"refs/heads/{branch}")):  # for `git push`
                self._git("config", f"branch.{branch}.{name}", value, check=False)
        self._git("worktree", "move", str(new), str(self._path))
        return Workspace(str(self._path), branch)

    def commits(self) -> Sequence[str]:
        """What is on its branch and not on the base, the newest first: ids and subjects."""
        words = ("log", "--no-show-signature", "--format=%h %s", f"{self._start()}..HEAD")
        found = [line[:200] for line in self._git(*words, at=self._path).splitlines()]
        more = len(found) - COMMITS
        return [*found[:COMMITS], *([f"and {more} older ones"] if more > 0 else [])]

    def open_pull_request(self, branch: str, title: str, body: str, draft: bool) -> str:
        """Where the pull request of a branch is: one that is open or merged, else a new one, by `gh`. Nothing is pushed."""
        if not shutil.which("gh"):
            raise PulseError("there is no gh, the GitHub CLI, on the daemon's PATH")
        how = f"push it first: git -C {self._path} push -u origin {branch}"
        if not self._git("for-each-ref", f"refs/remotes/*/{branch}"):
            raise PulseError(f"the branch {branch} is not pushed; {how}")
        if (left := int(self._git("rev-list", "--count", f"refs/heads/{branch}", "--not", "--remotes"))) > 0:
            raise PulseError(f"{count(left, 'commit')} of {branch} {are(left)} not pushed; {how}")
        told = self._git.run(("gh",), "pr", "list", "--head", branch, "--state", "all", "--json", "url,state")
        found = {str(one["state"]): str(one["url"]) for one in reversed(json.loads(told or "[]"))}
        if url := found.get("OPEN") or found.get("MERGED"):
            return url
        said = ("--head", branch, "--base", self._base, "--title", title, "--body", body)
        return self._git.run(("gh",), "pr", "create", *said, *(["--draft"] if draft else [])).splitlines()[-1]

    def remove(self) -> str:
        """Remove it; else why it is kept."""
        if not self._path.exists():
            self._git("worktree", "prune", check=False)
            return ""
        if not self._is_whole():
            return f"it is no worktree of {self._repository} any more"
        if changed := self._git("status", "--porcelain", "--untracked-files=all", at=self._path):
            return f"it has {count(len(changed.splitlines()), 'file')} not committed"
        known = ["--remotes", *([self._base] if self._has(f"refs/heads/{self._base}") else [])]
        if (own := int(self._git("rev-list", "--count", "HEAD", "--not", *known, at=self._path))) > 0:
            return f"it has {count(own, 'commit')} neither pushed nor on {self._base}"
        self._git("worktree", "remove", str(self._path))
        return ""

    def _is_whole(self) -> bool:
        if not (self._path / ".git").is_file():
            return False
        asked = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        there, here = self._git(*asked, at=self._path, check=False), self._git(*asked)
        return bool(there) and os.path.realpath(there) == os.path.realpath(here)

    def _start(self) -> str:
        """The commit on which a new branch begins: of the base branch here, or at the remote."""
        for name in (f"refs/heads/{self._base}", f"refs/remotes/origin/{self._base}"):
            if self._has(name):
                return name
        branches = self._git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        known = ", ".join(branches[:20]) or "none"
        raise PulseError(f"{self._repository} has no branch {self._base!r}; its branches are: {known}")

    def _has(self, name: str) -> bool:
        return bool(self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False))
