"""The child's program: receives probe requests and answers them.

A question is an id and a `ProbeRequest`, an answer an id and a `ProbeResult`. They are answered in the order in which
they end. It ends when its input does, and, should it hang, with the daemon.
"""

import asyncio
import json
import logging
import signal
import sys
import time
from importlib import import_module
from typing import Any

from pulse_adapters.network.probe_failure import ProbeFailed, causes
from pulse_adapters.workers import child_side
from pulse_adapters.workers.descriptors import REQUESTS
from pulse_adapters.workers.framing import LARGEST_REQUEST, Frames, Message
from pulse_adapters.workers.syscalls import prctl
from pulse_adapters.workers.threads import Pool
from pulse_core.ports.prober import ProbeRequest

US_PER_SECOND = 1_000_000
LONGEST_DETAIL = 1_000
"""Characters of what is told of a trouble."""
THREADS = 64
"""Lookups that may hang at the same time before another one has to wait."""

_DEATH_SIGNAL = 1

INSTALL = "pip install dnspython httpx"


async def answer(question: Message) -> Message:
    """The answer to one question. Never raises."""
    began = time.perf_counter()
    try:
        module = probe_module(question["about"])
        began, timeout = time.perf_counter(), question["timeout_us"] / US_PER_SECOND
        if question["about"] == "dns":
            found = {"addresses": await module.resolve(question["target"], question["servers"], timeout)}
        else:
            asked = ProbeRequest(**{name: question[name] for name in ProbeRequest._fields})
            status, body = await module.fetch(asked, timeout)
            found = {"status": status, **({"body": body} if asked.keeps else {})}
    except ProbeFailed as failed:
        status = {"status": failed.status} if failed.status else {}
        found = {"trouble": failed.trouble, "detail": failed.words[:LONGEST_DETAIL], **status}
    except ModuleNotFoundError as error:
        found = {"trouble": "unasked", "detail": f"{error}; install it with: {INSTALL}"}
    except Exception as error:  # noqa: BLE001 - a fault of the probe says nothing about the target
        *_, root = causes(error)
        found = {"trouble": "unasked", "detail": f"{type(root).__name__}: {root}"[:LONGEST_DETAIL]}
    return {"id": question["id"], "took_ms": round((time.perf_counter() - began) * 1000, 3), **found}


def probe_module(about: str) -> Any:
    """What probes names, or pages. Imported on first use, since each takes 6 MiB and up to a quarter of a second."""
    for unused in ("click", "rich"):  # for the command line of httpx: 7 MiB
        sys.modules.setdefault(unused, None)  # type: ignore[arg-type]  # what is None cannot be imported
    return import_module(f"pulse_adapters.network.{about}")


async def main() -> None:
    """Answer concurrently until the input ends."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(Pool(THREADS, "lookup"))
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
    child_side.begin(memory=child_side.MEMORY)
    prctl(_DEATH_SIGNAL, signal.SIGKILL)  # one that hangs does not see the end of its input
    logging.disable()
    asyncio.run(main())
