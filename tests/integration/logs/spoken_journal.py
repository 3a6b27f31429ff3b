"""Stands in for journalctl: says the entries of a file, and follows it; `spoken_journal.py FILE ARGUMENTS…`.

A line `die STATUS` in the file makes it end once that has been read.
"""

import json
import sys
import time


def main(path: str, arguments: list[str]) -> None:
    """Say what comes after the cursor, in the form that journalctl has."""
    after = next((one.partition("=")[2] for one in arguments if one.startswith("--after-cursor=")), "0")
    with open(f"{path}.asked", "a") as asked:
        asked.write(json.dumps(arguments) + "\n")
    number = 0
    with open(path) as file:
        while True:
            place = file.tell()
            line = file.readline()
            if not line.endswith("\n"):
                file.seek(place)
                time.sleep(0.005)
                continue
            number += 1
            if line.startswith("die "):
                if number > int(after):
                    print("Journal file is corrupted", file=sys.stderr, flush=True)
                    sys.exit(int(line[4:]))
            elif number > int(after):
                entry = {"__CURSOR": str(number), "__REALTIME_TIMESTAMP": "1", **json.loads(line)}
                print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
