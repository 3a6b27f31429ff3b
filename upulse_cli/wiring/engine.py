"""The user's rules of a home: for its daemon, and for what people ask of them (promote, replay, shadow, dev, explain).

What is slow to import, or is to stay out of the daemon's memory, is imported where it is used.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse_adapters.git.git_files import has_repository
from pulse_adapters.workers.file_systems import answer_in_time
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.host_groups import host_group
from pulse_adapters.workers.run_as import RunAs
from pulse_core.app.context import HomeContext
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.names import RUN_COMMAND
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import CannotLoad

if TYPE_CHECKING:
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.engine_user.layout import EngineUserLayout
    from pulse_adapters.git.git_command import Git
    from pulse_adapters.git.scaffold import WrittenFile
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.sandbox.code_checks import SandboxedChecks
    from pulse_core.app.engine.context import Windows, WorkflowContext
    from pulse_core.app.engine.promote import Proposal
    from pulse_core.app.engine.user_rules import UserRules
    from pulse_core.engine.engine_context import EngineParts
    from pulse_core.model.kinds import Effect
    from pulse_core.ports.engine_repository import StagingState
    from pulse_core.settings.settings import Settings


PROPOSED = "refs/pulse/proposed"
"""Names the commit on which a proposal is made, while it is tried: what lies on it as the next begins, a kill has left."""
_PROPOSE, _WRITTEN = "Propose", "pulse-proposed"
"""How its message begins, and the file beside git's own that names what is being written for it."""


def engine_of(
    home: HomeLayout, clock: Clock, settings: "Callable[[], Settings]", windows: "Windows"
) -> "EngineParts | None":
    """The user's rules for the daemon, if the home has a repository for them that can be looked at."""
    try:
        if not has_repository(home.path):
            return None
    except PulseError:
        return None  # what is wrong with it, those say who watch it
    from pulse_adapters.git.git_client import GitClient
    from pulse_core.engine.engine_context import EngineParts

    git, (rule_hosts, action_hosts) = GitClient(home.path), hosts_of(home, clock, settings)
    rules, actions = rule_hosts(), action_hosts(windows)
    bare = (
        EngineParts(git, replace(rules, plugins={}), replace(actions, plugins={})) if rules.plugins else None
    )
    return EngineParts(git, rules, actions, bare)


async def repository_fault(home: HomeLayout, files: FileThreads, commit: str, thorough: bool) -> str:
    """What is wrong with the repository of the commit in force; empty if nothing is."""
    from pulse_adapters.git.git_client import GitClient

    return await GitClient(home.path, files=files).fault(commit, thorough)


def engine_fault(home: HomeContext) -> str:
    """What git finds wrong with the repository of the user's rules; empty if nothing, or there is to be none.

    Of another user's, only what can be seen without git: root runs it in no folder that somebody else may write to.
    """
    from pulse_adapters.git.git_files import read_main
    from pulse_core.ports.readers import EventQuery

    folder = home.layout.path / "engine"

    def looked_at() -> tuple[bool, bool, str]:
        git = folder / ".git"
        is_ours = not git.exists() or git.stat().st_uid == os.geteuid()
        return os.path.lexists(folder), is_ours, read_main(home.layout.path)

    try:
        is_there, is_ours, main = answer_in_time(str(folder), looked_at)
        was_promoted = False
        with suppress(PulseError), home.events() as log:  # what is wrong with the log is said of the log
            was_promoted = any(log.events(EventQuery(kinds=("promote",)), limit=1))
        if not (was_promoted or is_there):
            return ""
        from pulse_core.app.state import (
            current_value,
        )  # the models of all events, which most homes need not load here
        from pulse_core.projections.state import ENGINE

        in_force = current_value(home, ENGINE).commit if was_promoted else ""
        return asyncio.run(repository_fault(home.layout, FileThreads(), in_force or main, thorough=is_ours))
    except (PulseError, OSError) as error:
        return str(error)


def hosts_of(
    home: HomeLayout, clock: Clock, settings: "Callable[[], Settings]"
) -> "tuple[Callable[..., ChildHosts], Callable[[Windows], ChildActionHosts]]":
    """What makes the starters of rule hosts and of action hosts, by the settings as they are at each start."""
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import plugin_entries

    user, plugins, group = partial(run_as, home, settings), plugin_entries(), partial(host_group, home.path)

    def action_hosts(windows: "Windows") -> ChildActionHosts:
        return ChildActionHosts(clock, windows, run_as=user, plugins=plugins, group=group)

    return partial(ChildHosts, run_as=user, plugins=plugins, group=group), action_hosts


def user_rules(home: HomeContext) -> "UserRules | None":
    """The user's rules for one question; None without an engine."""
    if not has_repository(home.layout.path):
        return None
    from pulse_adapters.git.git_files import read_main
    from pulse_adapters.git.revisions import ensure_revision
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import plugin_entries
    from pulse_core.app.engine.user_rules import UserRules
    from pulse_core.ports.engine_repository import EngineRepository

    path = home.layout.path

    def repository() -> EngineRepository:
        from pulse_adapters.git.repository import Repository

        return Repository(path)

    user = partial(run_as, home.layout, lambda: home.settings().settings)
    return UserRules(
        home,
        ChildHosts(run_as=user, plugins=plugin_entries(), group=partial(host_group, path)),
        repository,
        main=lambda: read_main(path) or repository().head(),
        ensure=partial(ensure_revision, path),
    )


def command_refusal(effect: "Effect", settings: "Settings") -> str:
    """Why the daemon would leave out this effect, since its program is not allowed; empty if it would not."""
    from pulse_adapters.workers.allowed_programs import allowed_program, allowed_programs

    if effect.action != RUN_COMMAND or not (argv := effect.params.get("argv")):
        return ""
    try:
        allowed_program(str(argv[0]), allowed_programs(settings.executors.run_command.allow))
    except PulseError as error:
        return f"left out: {error}"
    return ""


def workflow_context(home: HomeContext, *, is_live: bool = False) -> "WorkflowContext":
    """The engine of this home, for what people ask of it. Raises NoRepository.

    The settings are read once, unless it is to follow a daemon whose settings may change meanwhile (is_live).
    """
    from pulse_adapters.git.git_command import login_author
    from pulse_adapters.git.repository import Repository
    from pulse_core.app.engine.context import WorkflowContext

    context = home if is_live else replace(home, settings=cache(home.settings))
    make_rule_hosts, make_action_hosts = hosts_of(
        home.layout, home.clock, lambda: context.settings().settings
    )
    return WorkflowContext(
        home=context,
        author=login_author(),
        repository=Repository(home.layout.path),
        checks=partial(code_checks, context),
        rule_hosts=make_rule_hosts(),
        action_hosts=make_action_hosts,
        standby_hosts=partial(make_rule_hosts, dev=True),
    )


def begin_in_staging(home: Path, what: str, name: str) -> Sequence[Path]:
    """Write a rule, projection, watcher or executor with its test into staging; the files."""
    from pulse_adapters.git.repository import Repository
    from pulse_adapters.git.scaffold import scaffold

    repository = Repository(home)
    repository.mend()
    return list(scaffold(repository.staging().path, what, name))


def propose_rule(
    home: HomeContext, author: str, may_promote: bool, name: str, texts: tuple[str, str]
) -> "Proposal":
    """Write a rule and its test into staging, show them to the gates, and take them back if one says no.

    author: as `NAME <EMAIL>`; may_promote: whether it comes into force if none does. Raises PulseError if staging has what
    somebody has not committed, or another proposal is being tried. What somebody does there meanwhile stays. One that was
    killed before, or found the repository locked, is taken back.
    """
    from pulse_adapters.git.git_command import Git
    from pulse_adapters.git.locks import proposal_lock, repository_lock
    from pulse_adapters.git.scaffold import WrittenFile, note_written, scaffold
    from pulse_adapters.git.staging import commit_staging
    from pulse_core.app.engine.promote import NotPromoted, Plan, Proposal, promote, try_staging

    engine, path = workflow_context(home), home.layout.path
    git = Git(path)
    engine.repository.mend()
    plan, written, ours = Plan(f"{_PROPOSE} {name}", author), list[WrittenFile](), None

    def note(one: WrittenFile) -> None:
        written.append(one)
        note_written(git.folder / _WRITTEN, git.staging, written)

    with proposal_lock(path):  # two would be in one commit, or one on top of the other
        _take_back_uncommitted(git)
        before = engine.repository.settled_staging()
        if before.dirty or not before.can_be_committed:
            raise PulseError("; ".join(before.advice()) or "staging can't be committed to now")
        if _take_back_earlier(git):
            before = engine.repository.settled_staging()
        try:
            with repository_lock(path):  # or a promote would commit half of it as somebody else's
                git("update-ref", PROPOSED, before.commit)
                scaffold(before.path, "rule", name, texts, note)
                ours = commit_staging(git, plan.message, author)
            if may_promote:
                commit, gates, answer = promote(engine, plan)
            else:
                commit, gates, answer = *try_staging(engine, plan), None
            git("update-ref", "-d", PROPOSED)
        except BaseException as error:
            left = _taken_back(path, before, ours, written)
            if isinstance(error, NotPromoted):
                return Proposal(error.commit, error.gates, False, False, left)
            if left and isinstance(error, PulseError):
                words = "somebody has changed or promoted meanwhile what was written, which is left"
                raise PulseError(f"{error}; {words}: {', '.join(left)}") from error
            raise
    return Proposal(commit, gates, True, answer is not None)


def _take_back_uncommitted(git: "Git") -> None:
    """Take back the files of a proposal that was killed before they were committed: else they would pass for edits."""
    from pulse_adapters.git.git_command import STAGING
    from pulse_adapters.git.locks import repository_lock
    from pulse_adapters.git.scaffold import noted, take_back

    with repository_lock(git.home):
        written = noted(git.folder / _WRITTEN, git.staging)
        if written and git.commit(PROPOSED) == git.commit(STAGING):
            take_back(written)
            paths = [str(one.path.relative_to(git.staging)) for one in written]
            git.run("reset", "--quiet", PROPOSED, "--", *paths, at=git.staging)  # as far as it was staged
            git("update-ref", "-d", PROPOSED)
        (git.folder / _WRITTEN).unlink(missing_ok=True)


def _take_back_earlier(git: "Git") -> bool:
    """Take back the commit of a proposal that nobody has seen to its end, if it is the last one in a clean staging; returns
    whether there was one."""
    from pulse_adapters.git.git_command import MAIN, STAGING
    from pulse_adapters.git.locks import repository_lock

    with repository_lock(git.home):
        if (base := git.commit(PROPOSED)) is None:
            return False
        last = git("log", "-1", "--no-show-signature", "--format=%P %s", STAGING)
        is_last = last.startswith(f"{base} {_PROPOSE} ") and not git.contains(MAIN, STAGING)
        if is_last:
            git("reset", "--quiet", "--keep", base, at=git.staging)
        git("update-ref", "-d", PROPOSED)
    return is_last


def _taken_back(
    home: Path, before: "StagingState", ours: str | None, written: "Sequence[WrittenFile]"
) -> Sequence[str]:
    """Take back these files, and the commit with them if it is the last one; those that somebody has changed, which stay.

    ours: that commit, of which nothing is taken back once main holds it. What else it has stays as well, to be committed.
    """
    from pulse_adapters.git.git_command import MAIN, STAGING, Git
    from pulse_adapters.git.locks import repository_lock
    from pulse_adapters.git.scaffold import take_back

    git, paths = Git(home), [str(one.path.relative_to(before.path)) for one in written]
    with repository_lock(home):
        if not (ours and git.contains(MAIN, ours)):
            if ours and git.commit(STAGING) == ours:
                git("reset", "--quiet", "--soft", before.commit, at=before.path)
                git("reset", "--quiet", before.commit, "--", *paths, at=before.path)
            paths = [str(path.relative_to(before.path)) for path in take_back(written)]
        git.run("update-ref", "-d", PROPOSED)  # it may not be named yet
        return paths


def plugin_contents() -> Sequence[Mapping[str, Any]]:
    """What each installed plugin brings, as JSON values."""
    from pulse_adapters.rule_host.plugins import installed_plugins

    return installed_plugins()


def code_checks(context: HomeContext) -> "SandboxedChecks":
    """The gates' tools for this home, run as the engine's user if it has one. Raises PulseError."""
    from pulse_adapters.git.create_repository import template_folder
    from pulse_adapters.sandbox.code_checks import SandboxedChecks

    config, home = template_folder() / "pyproject.toml", context.layout
    user = engine_user(home, context.settings().settings) if os.geteuid() == 0 else None
    group = partial(host_group, home.path)
    if user:
        return SandboxedChecks(config, user.cache, user.account.ids, group)

    def cache_folder() -> Path:
        path = home.path / "cache"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    return SandboxedChecks(config, cache_folder, group=group)


def run_as(home: HomeLayout, settings: "Callable[[], Settings]") -> RunAs:
    """As whom the engine's code runs. Raises CannotLoad where it can't have the user that it must have."""
    if os.geteuid() != 0:
        return RunAs()  # nobody but root can give a process another user
    try:
        found = engine_user(home, settings())
    except PulseError as error:
        raise CannotLoad(str(error)) from error
    return RunAs(found.account.ids, found.shown) if found else RunAs()


def engine_user(home: HomeLayout, settings: "Settings") -> "EngineUserLayout | None":
    """The user that the engine's code runs as, with its own place; None if it runs as we do. Raises PulseError."""
    from pulse_adapters.engine_user.layout import engine_user_of

    return engine_user_of(home.path, settings.engine.user)
