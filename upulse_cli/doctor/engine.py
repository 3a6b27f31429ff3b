"""The engine: whether its repository is sound, and what the log calls in force is what it holds."""

import os
from collections.abc import Iterator

from pulse_core.model.errors import PulseError
from upulse_cli.doctor.findings import OK, WARN, Finding, Ground

MEND = "put back what is missing of it: upulse init"


def engine(ground: Ground) -> Iterator[Finding]:
    """The repository of the user's rules, and the host that runs them."""
    if not (ground.home.path / "engine").exists():
        yield Finding("engine", OK, "none; upulse init makes one")
        return
    from pulse_adapters.git.repository import Repository
    from upulse_cli.engine.asking import engine_of

    try:
        repository = Repository(ground.home.path)
        main, advice = repository.head(), list(repository.staging().advice())
        in_force = engine_of(ground.home)
    except PulseError as error:
        yield Finding("engine", WARN, str(error), MEND)
        return
    if in_force.commit and in_force.commit != main:
        words = f"{in_force.commit[:12]} is in force, but main is {main[:12]}"
        yield Finding(
            "engine", WARN, words, "promote what you want in force; main is moved by promotes alone"
        )
    else:
        yield Finding("engine", OK, f"{main[:12]} is in force" if in_force.commit else f"main is {main[:12]}")
    for sentence in advice:
        yield Finding("staging", OK, sentence)
    yield from _laid_out(ground)
    yield from _running(ground)


def _laid_out(ground: Ground) -> Iterator[Finding]:
    """Whether what was laid out to be run has been changed by somebody."""
    from pulse_adapters.git.place import ALTERED, altered

    for commit in altered(ground.home.path):
        words = f"somebody changed the files of {commit[:12]} after they were laid out; they were made anew"
        kept = ground.home.path / "revisions" / f"{ALTERED}{commit}"
        yield Finding("revisions", WARN, words, f"look at what was found, then remove it: {kept}")


def engine_user(ground: Ground) -> Iterator[Finding]:
    """Whether the engine's code runs as a user that may do nothing else."""
    if not (ground.home.path / "engine").exists():
        return
    from pulse_adapters.config.file import load_to_start
    from pulse_adapters.engine_user.account import make
    from pulse_adapters.engine_user.account_setup import account_state

    try:
        now = account_state(ground.home.path, load_to_start(ground.home.config)[0].engine.user)
    except PulseError:
        return  # the settings are another check's
    if ground.home.path.stat().st_uid:
        yield Finding("engine user", OK, f"isolation: partial (no user): {now.missing}", now.remedy)
    elif now.missing:
        words = f"rules of your own run as root: {now.missing}"
        may = now.can_be_made and os.geteuid() == 0
        repair = (lambda: f"made the user {make(now.account).name}; restart the daemon") if may else None
        yield Finding("engine user", WARN, words, now.remedy, repair)
    elif _runs_without(ground):
        words = f"there is the user {now.account}, but the engine was loaded without it"
        yield Finding("engine user", WARN, words, "upulse daemon restart")
    else:
        yield Finding("engine user", OK, f"rules of your own run as {now.account}")


def _runs_without(ground: Ground) -> bool:
    if isinstance(ground.answer, PulseError) or not (now := ground.answer.get("engine")):
        return False
    return bool(now["runs"]) and not now["sandbox"].get("user")


def _running(ground: Ground) -> Iterator[Finding]:
    """What the daemon says of its host."""
    if isinstance(ground.answer, PulseError) or not (now := ground.answer.get("engine")):
        return
    if not now["runs"]:
        yield Finding(
            "rule host", WARN, "no host is up; your rules don't run", "see: upulse events --kind error"
        )
    elif now["degraded"]:
        yield Finding(
            "rule host", WARN, f"{now['runs'][:12]} runs instead of what was promoted", "promote anew"
        )
    for rule, why in now["quarantined"].items():
        yield Finding("rule", WARN, f"{rule} is passed over: {why}", "mend it, and promote")
    if weak := [part for part, holds in now["sandbox"].items() if not holds and part != "user"]:
        yield Finding("rule host", WARN, f"isolation: partial (no {', '.join(weak)})", "use a newer kernel")
