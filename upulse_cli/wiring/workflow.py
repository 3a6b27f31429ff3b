"""The engine of a home for what people ask of it: promote, replay, shadow, dev."""

import os
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from pulse_adapters.action_host.hosts import ChildActionHosts
from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.git_command import login_author
from pulse_adapters.git.repository import Repository
from pulse_adapters.rule_host.hosts import ChildHosts, StandbyHosts
from pulse_adapters.rule_host.plugins import plugin_entries
from pulse_adapters.sandbox.code_checks import SandboxedChecks
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import Windows, WorkflowContext
from pulse_core.home import HomeLayout
from upulse_cli.wiring.engine import engine_user, run_as
from upulse_cli.wiring.home import home_context


def workflow_context(home: HomeLayout, *, is_live: bool = False) -> WorkflowContext:
    """The engine of this home, for what people ask of it. Raises NoRepository.

    The settings are read once, unless it is to follow a daemon whose settings may change meanwhile (is_live).
    """

    context = home_context(home)
    if not is_live:
        context = replace(context, settings=cache(context.settings))
    user, plugins = partial(run_as, home, lambda: context.settings().settings), plugin_entries()

    def action_hosts(windows: Windows) -> ChildActionHosts:
        return ChildActionHosts(context.clock, windows, run_as=user, plugins=plugins)

    return WorkflowContext(
        home=context,
        author=login_author(),
        repository=Repository(home.path),
        checks=partial(code_checks, context),
        rule_hosts=ChildHosts(run_as=user, plugins=plugins),
        action_hosts=action_hosts,
        standby_hosts=lambda: StandbyHosts(ChildHosts(run_as=user, plugins=plugins, dev=True)),
    )


def code_checks(context: HomeContext) -> SandboxedChecks:
    """The gates' tools for this home, run as the engine's user if it has one. Raises PulseError."""

    config, home = template_folder() / "pyproject.toml", context.layout
    user = engine_user(home, context.settings().settings) if os.geteuid() == 0 else None
    if user:
        return SandboxedChecks(config, user.work, user.account.ids)

    def cache_folder() -> Path:
        path = home.path / "cache"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    return SandboxedChecks(config, cache_folder)
