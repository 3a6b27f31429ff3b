"""When a gateway's config is good, and when a good one is put back."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from pulse_core.actions import ActionDeclaration, ActionParams
from pulse_core.model.durations import duration_text
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.text import count, format_size
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Window
from pulse_core.openclaw.settings import OPENCLAW, OpenClawSettings
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import notify_over, notify_unless_told, survival_effect
from pulse_core.rules.survival.process_watchdog import PAUSED, evaluate_status, newest_look, restart_effect
from pulse_core.settings.processes import Name

KEY = "openclaw"
"""The watcher. Its sample has for each gateway: config (its hash, empty if there is none), age_us (since it was last
changed), kept (the hashes of good ones, the newest first), agents, session_files, session_bytes; or its fault."""
PAUSE_US = 600_000_000
"""How long after a config was put back, or could not be, that is tried again."""
Hash = Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]


class RestoreParams(ActionParams):
    """Whose config, the one that it does not boot with, and the one that it has booted with."""

    process: Name
    bad: Hash
    good: Hash


RESTORE_CONFIG = ActionDeclaration(
    "restore-config",
    RestoreParams,
    "Puts back a config that an OpenClaw gateway has stayed up with; the one in its place is kept beside it.",
    exclusive_by="process",
    is_reserved=True,
    refusal=lambda effect, curr: "a config is put back only after starts with a new one have failed",
)


def has_proven(gateway: OpenClawSettings, age_us: int, state: State, now: Moment) -> bool:
    """Whether it was started with a config that is so old, and has been up for long enough since."""
    up = state.processes[gateway.process].up
    return up is not None and gateway.proven <= now.since(up) <= age_us


def failed_starts(gateway: OpenClawSettings, age_us: int, state: State, now: Moment) -> int:
    """How many starts with a config that is so old have failed in a row; 0 while it is up, coming up, or to be down."""
    history = state.processes[gateway.process]
    is_open = gateway.process in state.processes.restarting.values()
    if history.up or history.starting or is_open or (history.stop and history.stop.holds(now)):
        return 0
    return sum(now.since(wished) < age_us for wished in history.attempts)


async def restore_config(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Put back the last good config of a gateway that does not boot with a new one."""
    verdict = await inner(prev, curr)
    for gateway, age_us, seen in _seen(curr):
        name, kept = gateway.process, seen["kept"]
        topic, title = f"{KEY}:{name}", f"{name} does not boot with its new config"
        if seen["config"] in kept:
            if curr.process(name).up:
                verdict = verdict.plus(*notify_over(topic, title, "it is up with a good one", curr, KEY))
            verdict = verdict.plus(*_start_with_good_one(name, curr))
            continue
        failed = failed_starts(gateway, age_us, curr.state, curr.now)
        if not kept or not gateway.failures or failed < gateway.failures:
            continue
        key = f"{RESTORE_CONFIG.name}:{name}"
        if left := curr.effects.pause_left(key, PAUSE_US, curr.now):
            verdict = verdict.after_wait(left)
            continue
        words = (
            f"{count(failed, 'start')} with it failed; {kept[0][:12]} is put back, with which it has booted"
        )
        params = {"process": name, "bad": seen["config"], "good": kept[0]}
        wish = survival_effect(RESTORE_CONFIG.name, key, params, words, curr.samples(KEY, "process-alive"))
        verdict = verdict.plus(wish, *notify_unless_told(topic, title, words, curr, KEY))
    return verdict


def _start_with_good_one(name: str, curr: Snapshot) -> Iterator[Effect]:
    """The first start since its config was put back, if a pause holds it back: what failed was another config."""
    put_back = curr.effects.settled_at.get(f"{RESTORE_CONFIG.name}:{name}")
    last = curr.process(name).attempts[-1:]
    if put_back is None or not last or curr.now.since(last[0]) <= curr.now.since(put_back):
        return
    for process in curr.settings.process:
        look = newest_look(name, curr)
        if process.name == name and (status := evaluate_status(process, curr, look)).state in PAUSED:
            yield restart_effect(process, f"{status.why}; a good config was put back since", look, curr)


def _seen(curr: Snapshot) -> Iterator[tuple[OpenClawSettings, int, Mapping[str, Any]]]:
    """Each gateway whose files can be read, how old its config is now, and the newest sample of it."""
    if sample := curr.window(KEY).last:
        for gateway in OPENCLAW.of(curr.settings):
            seen = sample.data.get(gateway.process, {})
            if "config" in seen:
                yield gateway, seen["age_us"] + curr.now.since(sample.moment), seen


def has_news(window: Window) -> bool:
    """Whether a gateway has a config that is not known to be good."""
    data = window.last.data if window.last else {}
    return any("config" in one and one["config"] not in one["kept"] for one in data.values())


def status_lines(curr: Snapshot) -> Iterator[str]:
    """The config and the sessions of each gateway."""
    for gateway, age_us, seen in _seen(curr):
        last, tried = (
            curr.window(KEY).last,
            curr.effects.settled_at.get(f"{RESTORE_CONFIG.name}:{gateway.process}"),
        )
        if last and tried and (since := curr.now.since(tried)) < curr.now.since(last.moment):
            ago = f"{duration_text(since)} ago"
            yield f"openclaw  {gateway.process}: a good config was put back {ago}; nobody has looked since"
            continue
        is_good = "good" if seen["config"] in seen["kept"] else f"new for {duration_text(age_us)}"
        sessions = f"{count(seen['session_files'], 'session file')} of {count(seen['agents'], 'agent')}"
        size = format_size(seen["session_bytes"])
        yield f"openclaw  {gateway.process}: config {seen['config'][:12] or 'gone'} is {is_good}; {sessions}, {size}"
    data = last.data if (last := curr.window(KEY).last) else {}
    yield from (f"openclaw  {name}: {seen['fault']}" for name, seen in data.items() if "fault" in seen)
