"""The child's program: receives probe requests and answers them.

A question is an id and a `ProbeRequest`, an answer an id and a `ProbeResult`. They are answered in the order in which
they end. It ends when its input does.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pulse_adapters.network.probe_failure import ProbeFailed, describe_cause
from pulse_adapters.workers import child_side
from pulse_adapters.workers.descriptors import REQUESTS
from pulse_adapters.workers.framing import LARGEST_REQUEST, Frames, Message

US_PER_SECOND = 1_000_000
LONGEST_DETAIL = 1_000
"""Characters of what is told of a trouble."""
THREADS = 64
"""Lookups that may hang at the same time before another one has to wait."""

Probe = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

INSTALL = "pip install dnspython httpx"


async def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to one question. Never raises."""
    began = time.perf_counter()
    try:
        probe = PROBES[question["about"]]()
        began = time.perf_counter()
        found: dict[str, Any] = {**await probe(question)}
    except ProbeFailed as failed:
        found = {"trouble": failed.trouble, "detail": failed.words}
    except ModuleNotFoundError as error:
        found = {"trouble": "unasked", "detail": f"{error}; install it with: {INSTALL}"}
    except Exception as error:  # noqa: BLE001 - a fault of the probe says nothing about the target
        found = {"trouble": "unasked", "detail": describe_cause(error)}
    found["detail"] = found.get("detail", "")[:LONGEST_DETAIL]
    return {"id": question["id"], "took_ms": round((time.perf_counter() - began) * 1000, 3), **found}


def dns_probe() -> Probe:
    """The DNS probe. Imported on first use, since that takes 6 MiB and a tenth of a second."""
    from pulse_adapters.network.dns import resolve

    async def probe(question: dict[str, Any]) -> dict[str, Any]:
        return {"addresses": await resolve(question["target"], question["servers"], _timeout(question))}

    return probe


def http_probe() -> Probe:
    """The HTTP probe. Imported on first use, since that takes 6 MiB and a quarter of a second."""
    for unused in ("click", "rich"):  # for the command line of httpx: 7 MiB
        sys.modules.setdefault(unused, None)  # type: ignore[arg-type]  # what is None cannot be imported
    from pulse_adapters.network.http import fetch

    async def probe(question: dict[str, Any]) -> dict[str, Any]:
        return {"status": await fetch(question["target"], _timeout(question), question["follows"])}

    return probe


def _timeout(question: dict[str, Any]) -> float:
    return float(question["timeout_us"]) / US_PER_SECOND


PROBES: Mapping[str, Callable[[], Probe]] = {"dns": dns_probe, "http": http_probe}


async def main() -> None:
    """Answer concurrently until the input ends."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS, "lookup"))
    frames, tasks = Frames(LARGEST_REQUEST), set[asyncio.Task[None]]()

    async def reply(question: Message) -> None:
        child_side.send(await answer(question))

    def read() -> None:
        if not (raw := child_side.receive_bytes()):
            child_side.exit_at_once(0)  # a lookup that hangs would hold up a gentler end
        for question in map(json.loads, frames.take(raw)):
            task = asyncio.create_task(reply(question), name=f"question {question['id']}")
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    loop.add_reader(REQUESTS, read)
    await asyncio.Event().wait()


if __name__ == "__main__":
    child_side.begin()
    logging.disable()
    asyncio.run(main())
