"""The files of runs: `runs/RUN/` in the home has the prompt and the output; tasks have folders in `workspaces/`."""

import asyncio
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from pulse_adapters.agents.run_tokens import new_run_token, run_socket, user_fault
from pulse_adapters.agents.worktrees import Worktree, branch_of
from pulse_adapters.workers.environment import selected_variables
from pulse_adapters.workers.full_disk import is_full
from pulse_adapters.workers.plain_file import cut_middle, end_of_plain, open_plain, read_plain
from pulse_adapters.workers.spawn import ProcessUser
from pulse_adapters.workers.threads import Pool
from pulse_adapters.workers.untrusted_paths import open_folder, remove_tree
from pulse_adapters.workers.users import process_user
from pulse_core.agents.actions import PullRequestParams
from pulse_core.agents.limits import RunSample
from pulse_core.agents.projection import Run
from pulse_core.agents.run_files import RunFolder, Workspace
from pulse_core.agents.settings import AgentSettings, workspaces_in
from pulse_core.agents.tools import TOOLS, Amounts, RunAnswer, fill, read_text
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.secret_text import hide_secrets
from pulse_core.model.text import as_data
from pulse_core.ports.programs import ProgramSpec
from pulse_core.settings.settings import Settings
from pulse_core.tasks.task import Project, TaskState

T = TypeVar("T")
LAST, MOST_KEPT, KEPT = 1 << 20, 8 << 20, 200
"""Bytes from the end of an output that are read for the answer; bytes of an ended run's output, and runs, that are kept."""
THREADS, NO_SIZE = 8, f"{0:20}"
"""The latter in a file before anything was cut: what is written over it later needs no room on the disk."""


class DiskRunFiles:
    """Implements `pulse_core.agents.run_files.RunFiles`; the disk is asked in threads.

    Folders of tasks are seen to in threads of their own: what lies there may take long, and survival needs the loop's.
    """

    def __init__(self, home: Path, settings: Callable[[], Settings]) -> None:
        self._home, self._settings = home, settings
        self._threads = Pool(THREADS, "workspaces")
        self._seen: dict[str, tuple[int, float, int, Amounts]] = {}  # by run: size, since when, bytes read

    async def _do(self, call: Callable[[], T], worktree: Worktree | None = None) -> T:
        """Do this in a thread; what git does for nobody any more is ended, or a stop of the daemon would wait for it."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            if worktree:
                worktree.close()

    async def workspace(self, task: TaskState, project: Project, user: str = "") -> Workspace:
        above = workspaces_in(self._home, self._settings())
        path = above / user / task.id
        try:
            await self._do(lambda: _make_place(above, process_user(user), project.repository))
            if project.repository:
                worktree = Worktree(project, path)
                return await self._do(lambda: worktree.make(task.id, task.title), worktree)
            await self._do(lambda: _make_folder(path, process_user(user)))
        except OSError as error:
            raise PulseError(f"no workspace can be made in {path.parent}: {error.strerror}") from error
        return Workspace(str(path))

    async def program(
        self, run: str, token: int, task: TaskState, agent: AgentSettings, workspace: Workspace
    ) -> ProgramSpec:
        folder, tool = RunFolder.of(self._home, run), TOOLS[agent.kind]
        prompt, told_by, user = prompt_of(task), agent.prompt or tool.prompt, process_user(agent.user)
        try:
            run_token = new_run_token(run, task.id, token, agent.name)
            await asyncio.to_thread(_make_files, folder, prompt, run_token)
        except OSError as error:
            raise PulseError(f"{folder.path} can't be written: {error.strerror}") from error
        own = Path(self._settings().socket.directory or HomeLayout(self._home).run) / "pulse.sock"
        values = {"prompt": prompt, "prompt_file": str(folder.prompt), "workspace": workspace.path}
        values |= {"model": agent.model, "task": task.id, "title": task.title}
        env = {
            **selected_variables(*agent.pass_env),
            **(user.environment if user else {}),
            **agent.env,
            "PULSE_AGENT": agent.name,
            "PULSE_TASK": task.id,
            "PULSE_TOKEN": run_token,
            "PULSE_WORKSPACE": workspace.path,
            **({} if user else {"PULSE_PROMPT_FILE": str(folder.prompt)}),
            "PULSE_SOCKET": str(run_socket(self._home, user) if user else own),
            "UPULSE_HOME": str(self._home),
        }
        if told_by == "environment":
            env["PULSE_PROMPT"] = prompt
        return ProgramSpec(
            fill(tool.argv(agent.command, agent.args, agent.model, agent.cost_per_run), values),
            workspace.path,
            env,
            str(folder.output),
            str(folder.prompt) if told_by == "stdin" else os.devnull,
            agent.user,
            agent.memory,
            agent.processes,
            agent.cpu_weight,
            str(folder.status) if tool.read is read_text else "",
            agent.output,
        )

    async def progress(self, run: Run, agent: AgentSettings | None) -> RunSample:
        """How large its output is, and how old; and what that says which was read so far, a piece at a time."""
        folder, turn = RunFolder.of(self._home, run.id), TOOLS[agent.kind].turn if agent else ""
        last, since, read, amounts = self._seen.pop(run.id, (-1, 0.0, 0, Amounts()))
        size, read, amounts = await asyncio.to_thread(_look, folder, turn, read, amounts)
        # By neither the wall clock nor a file's time: one can be set, and both go on while the machine sleeps.
        now = time.monotonic()
        self._seen[run.id] = size, (since := since if last == size else now), read, amounts
        for old in list(self._seen)[:-KEPT]:
            del self._seen[old]
        return RunSample(size, round((now - since) * 1e6), amounts.turns, amounts.tokens, amounts.same)

    async def output(self, run: Run, most: int) -> str:
        try:
            return await asyncio.to_thread(end_of_plain, RunFolder.of(self._home, run.id).output, most)
        except OSError as error:
            raise PulseError(f"its output can't be read: {error.strerror}") from error

    async def answer(self, run: Run, agent: AgentSettings | None) -> RunAnswer:
        said = await self.output(run, LAST)
        if await self.is_disk_full(run):  # which would take no record
            await asyncio.to_thread(_bound, RunFolder.of(self._home, run.id), LAST)
        answer = await asyncio.to_thread(TOOLS[agent.kind].read if agent else read_text, said.split("\n"))
        env = {**selected_variables(*agent.pass_env), **agent.env} if agent else {}
        return answer._replace(error=hide_secrets(answer.error, env))  # which people are told, outside, too

    async def exit_code(self, run: Run) -> int | None:
        """As a shell has written it down, to which a signal is 128 and its number."""
        try:  # some shells say before of what a program has died
            said = await asyncio.to_thread(read_plain, RunFolder.of(self._home, run.id).status, 10_000)
            code = int(said.split()[-1])
        except (OSError, ValueError, IndexError):
            return None
        return 128 - code if 128 < code <= 192 else code

    async def is_disk_full(self, run: Run) -> bool:
        return await self._do(lambda: is_full(self._home) or is_full(run.workspace or self._home))

    async def commits(self, path: str, project: Project) -> Sequence[str]:
        worktree = Worktree(project, Path(path))
        return await self._do(worktree.commits, worktree) if project.repository else ()

    async def clean(self, run: Run, most: int, known: Collection[str]) -> None:
        """Keep of the run only a bounded output; and of others than the known ones no more than the newest."""
        await asyncio.to_thread(_clean, RunFolder.of(self._home, run.id), most, known)

    async def open_pull_request(
        self, task: TaskState, project: Project, path: str, said: PullRequestParams
    ) -> str:
        """By the GitHub CLI, with the rights of whoever owns the repository."""
        if not project.repository:
            raise PulseError(f"the project {task.project} has no repository")
        worktree, branch = Worktree(project, Path(path or project.repository)), branch_of(task.id, task.title)
        title, body = said.title or task.title, said.body or task.result or task.prompt
        return await self._do(lambda: worktree.open_pull_request(branch, title, body, said.draft), worktree)

    async def remove_workspace(self, path: str, project: Project) -> str:
        folder, worktree = Path(path), Worktree(project, Path(path))

        def remove() -> str:
            if folder.is_symlink():
                return "it is a link by now"
            if project.repository or (folder / ".git").is_file():  # the project may be forgotten
                return worktree.remove()
            with suppress(FileNotFoundError):
                if any(folder.iterdir()):
                    return "there are files in it"
                folder.rmdir()
            return ""

        try:
            return await self._do(remove, worktree)
        except OSError as error:
            return f"it can't be removed: {error.strerror}"


def prompt_of(task: TaskState) -> str:
    """All that an agent is told: the title, the prompt, and what went wrong before."""
    parts = [f"# {task.title}", task.prompt.strip()]
    if task.error and task.attempts > 0:
        parts.append(f"An earlier attempt did not succeed. {as_data(task.error)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _make_place(above: Path, user: ProcessUser | None, repository: str) -> None:
    """Make the folder of all workspaces, and for those of another user one that is that user's."""
    above.mkdir(0o711 if user else 0o700, True, True)
    if user:
        if repository and os.stat(repository).st_uid != user.uid:
            raise PulseError(f"{repository} is not {user.name}'s; give the project a clone that is")
        _make_folder(above / user.name, user)
        if fault := user_fault(user.name, above):
            raise PulseError(fault)


def _make_folder(path: Path, user: ProcessUser | None) -> None:
    path.mkdir(0o700, exist_ok=True)
    if user:  # in whose folder it may be a link to anywhere by now
        with open_folder(path) as held:
            os.fchown(held, user.uid, user.gid)


def _make_files(folder: RunFolder, prompt: str, token: str) -> None:
    """Write prompt and token, and make the output: the start, which is in the loop, asks the disk for no change then."""
    folder.path.parent.mkdir(mode=0o700, exist_ok=True)
    folder.path.mkdir(mode=0o700, exist_ok=True)
    for path, text in ((folder.prompt, prompt), (folder.token, token), (folder.size, NO_SIZE)):
        with open(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
            file.write(text)
    for path in (folder.output, folder.status):
        os.close(open_plain(path, os.O_WRONLY | os.O_CREAT))


def _look(folder: RunFolder, turn: str, read: int, amounts: Amounts) -> tuple[int, int, Amounts]:
    """Its size, how far it was read by now, and what it says until there; a line that no piece holds is passed over."""
    before = 0  # it was cut
    with suppress(OSError, ValueError):
        before = int(read_plain(folder.size, len(NO_SIZE)))
    with suppress(OSError), open(open_plain(folder.output), "rb") as file:
        file.seek(read)
        piece = file.read(MOST_KEPT) if turn else b""
        whole = piece.rfind(b"\n") + 1 or (len(piece) if len(piece) == MOST_KEPT else 0)
        # One after the other: to part a piece of short lines at once holds all threads up for a seventh of a second.
        rows = BytesIO(piece[:whole].replace(b"\r", b"\n"))
        lines = (line.decode(errors="replace") for line in rows)
        return max(before, os.fstat(file.fileno()).st_size), read + whole, amounts.after(lines, turn)
    return before, read, amounts


def _bound(folder: RunFolder, most: int) -> None:
    """Cut out of the middle of an output what is more than `most` bytes: in place, since the disk may be full. Before, its
    size is on the disk: a daemon that comes after a crash would else take the answer of a run that printed too much."""
    most = min(most, MOST_KEPT)
    with suppress(OSError), open(open_plain(folder.output, os.O_RDWR), "r+b") as file:
        if (size := file.seek(0, os.SEEK_END)) > most:
            with open(open_plain(folder.size, os.O_RDWR | os.O_CREAT), "r+b") as noted:
                noted.write(b"%*d" % (len(NO_SIZE), size))
                noted.flush()
                os.fsync(noted.fileno())
            cut_middle(file, most, min(LAST, most // 2))


def _clean(folder: RunFolder, most: int, known: Collection[str]) -> None:
    with suppress(OSError):
        folder.prompt.unlink()
    _bound(folder, most)
    with suppress(OSError):
        made = {one: one.stat().st_mtime for one in folder.path.parent.iterdir() if one.name not in known}
        for old in sorted(made, key=lambda one: made[one])[: max(0, len(made) - KEPT)]:
            remove_tree(old)
