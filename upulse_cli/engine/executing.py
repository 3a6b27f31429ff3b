"""`upulse dev --execute`: what staging wishes, wished by hand, so that the log names the person who tried it."""

import asyncio
from collections.abc import Sequence

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_core.app.append import PATIENCE
from pulse_core.app.status import why_unheard
from pulse_core.model.errors import PulseError
from pulse_core.model.kinds import Effect
from upulse_cli.engine.dev import Execute
from upulse_cli.engine.own_hands import OwnHands
from upulse_cli.wiring.home import home_context


def by_hand(home: Home) -> Execute:
    """Has effects done by the daemon that runs; raises PulseError if none does."""
    if why := why_unheard(home_context(home)):
        raise PulseError(f"{why}; or leave out --execute, since nobody would do what staging wishes")

    async def execute(effects: Sequence[Effect]) -> Sequence[str]:
        return [await asyncio.to_thread(_asked, home, effect) for effect in effects]

    return execute


def here_first(by_daemon: Execute, hands: OwnHands) -> Execute:
    """Has done what staging has an executor for by that one, and all else by the daemon."""

    async def execute(effects: Sequence[Effect]) -> Sequence[str]:
        found: list[str] = []
        for effect in effects:
            own = effect.action in hands.executors
            found += [await hands.execute(effect)] if own else await by_daemon([effect])
        return found

    return execute


def _asked(home: Home, effect: Effect) -> str:
    """Have the daemon record one; what came of it."""
    data = effect.model_dump(include={"action", "key", "params", "not_after"}, exclude_none=True)
    data["reason"] = f"{effect.rule} in staging: {effect.reason}"
    draft = {"kind": Effect.kind, "subject": effect.key, "data": data}
    try:
        with Client(home.socket, PATIENCE) as client:
            event = client.ask("append", drafts=[draft])["events"][0]
    except PulseError as error:
        return f"{effect.key} is not done: {error}"
    if event["existing"]:
        return f"{effect.key} is open already: effect {event['id']}"
    return f"{effect.key} is on its way: effect {event['id']}"
