"""Writes log lines at a steady rate, into files that are rotated meanwhile.

`python -m tests.benchmarks.log_writer PATH PER_SECOND SECONDS ONE_IN ROTATIONS`
"""

import os
import sys
import time

STEP = 0.01


def opened(path: str) -> int:
    """The log, to be appended to."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def rotated(path: str, rotations: int) -> None:
    """As logrotate does: each older file takes the next number, and a new one is there at once."""
    for number in range(rotations, 0, -1):
        older = f"{path}.{number - 1}" if number > 1 else path
        if os.path.exists(older):
            os.rename(older, f"{path}.{number}")
    os.close(opened(path))


def main(path: str, per_second: int, seconds: float, one_in: int, rotations: int) -> None:
    """Append lines one by one, one in so many of which says ERROR; prints how many those were, and the seconds.

    The writer goes on in the file that was rotated for one step more, until it is told to open the new one.
    """
    at_once = round(per_second * STEP)
    log = opened(path)
    began, steps = time.monotonic(), round(seconds / STEP)
    turns = {round(steps * turn / (rotations + 1)) for turn in range(1, rotations + 1)}
    for step in range(steps):
        if step in turns:
            rotated(path, rotations)
        elif step - 1 in turns:
            os.close(log)
            log = opened(path)
        for number in range(step * at_once, (step + 1) * at_once):
            said = "INFO" if number % one_in else "ERROR"
            os.write(log, f"2026-01-31T08:15:00.123Z {said} request {number} took 12 ms of 250\n".encode())
        time.sleep(max(0.0, began + (step + 1) * STEP - time.monotonic()))
    print(len(range(0, steps * at_once, one_in)), time.monotonic() - began)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
