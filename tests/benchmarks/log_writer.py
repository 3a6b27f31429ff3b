"""Writes log lines at a steady rate: `python -m tests.benchmarks.log_writer PATH PER_SECOND SECONDS ONE_IN`."""

import os
import sys
import time

STEP = 0.01


def main(path: str, per_second: int, seconds: float, one_in: int) -> None:
    """Append lines one by one, one in so many of which says ERROR; prints how many those were, and the seconds."""
    at_once = round(per_second * STEP)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    began, steps = time.monotonic(), round(seconds / STEP)
    for step in range(steps):
        for number in range(step * at_once, (step + 1) * at_once):
            said = "INFO" if number % one_in else "ERROR"
            os.write(log, f"2026-01-31T08:15:00.123Z {said} request {number} took 12 ms of 250\n".encode())
        time.sleep(max(0.0, began + (step + 1) * STEP - time.monotonic()))
    print(len(range(0, steps * at_once, one_in)), time.monotonic() - began)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
