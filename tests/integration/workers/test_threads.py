"""Threads where the system gives none: what needs one fails, and all else goes on."""

import subprocess
import sys

SCRIPT = """
import asyncio, resource
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.process_memory import HANGING, MEMORY
from pulse_adapters.workers.threads import Pool, start_thread

def told(work):
    try:
        return work()
    except Exception as error:
        return type(error).__name__

async def main():
    loop = asyncio.get_running_loop()
    begun, unbegun = Pool(2, "begun", begun=True), Pool(2, "unbegun")
    loop.set_default_executor(begun)
    pages = int(open("/proc/self/statm").read().split()[0])
    whole = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 20), whole[1]))
    print("start", told(lambda: start_thread(print, "x")))
    print("begun", await asyncio.gather(*(asyncio.to_thread(str, number) for number in range(5))))
    print("unbegun", told(lambda: unbegun.submit(print)))
    print("memory", MEMORY.read("environ", 1) is HANGING)
    files = FileThreads(is_needed=lambda: True)
    for _ in range(2):
        try:
            print("files", await files.ask("x", lambda: "asked"))
        except OSError as error:
            print("files", type(error).__name__)
    resource.setrlimit(resource.RLIMIT_AS, whole)
    print("files", await files.ask("x", lambda: "asked"))
    unbegun.shutdown()

asyncio.run(main())
"""


def test_without_a_thread_what_needs_one_fails_and_is_done_later() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.splitlines() == [
        "start BlockingIOError",
        "begun ['0', '1', '2', '3', '4']",
        "unbegun BlockingIOError",
        "memory True",
        "files ThreadShortage",
        "files ThreadShortage",
        "files asked",
    ]
