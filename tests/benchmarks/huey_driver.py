"""Run by the interpreter that has huey: FILE TASKS WORKERS; prints tasks per second, from the first enqueued on."""

import sys
import threading
import time

from huey import SqliteHuey


def main() -> None:
    """Enqueue tasks that do nothing, have them done, and say how quick that was."""
    path, tasks, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    huey = SqliteHuey(filename=path, fsync=True)
    left, done, lock = [tasks], threading.Event(), threading.Lock()

    @huey.task()  # type: ignore[untyped-decorator]  # huey has no types
    def note(number: int) -> int:
        with lock:
            left[0] -= 1
            if not left[0]:
                done.set()
        return number

    consumer = huey.create_consumer(
        workers=workers,
        worker_type="thread",
        periodic=False,
        initial_delay=0.001,
        max_delay=0.01,
        backoff=1.1,
    )
    began = time.perf_counter()
    for number in range(tasks):
        note(number)
    consumer.start()
    done.wait()
    print(tasks / (time.perf_counter() - began), flush=True)
    consumer.stop(graceful=False)


if __name__ == "__main__":
    main()
