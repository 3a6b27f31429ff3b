"""Mutation testing of the survival rules: each small change of them must fail a test, or be judged harmless.

Of the known tools, mutmut leaves constants and tables alone and numbers its mutants, so that no judgement outlives
an edit, and cosmic-ray writes into the checkout and starts pytest anew for each; here nothing is written, and each
mutant lives in a forked child that has everything but the rules in memory already.
"""

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.campaign.changes import Change, changes
from tests.campaign.rehearsal import KILLED, MODULES, OUTCOMES, ROOT, attempt, file_of, prepare, recorded

TESTS = ("tests/unit/rules", "tests/unit/silences", "tests/unit/llm", "tests/unit/checks")
JUDGED = Path(__file__).with_name("judged_mutants.txt")


def main(argv: Sequence[str] | None = None) -> int:
    """Try every change of the survival rules; the exit code says whether each was noticed or is judged."""
    parser = argparse.ArgumentParser(prog="tests.campaign.mutants", description=main.__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="only these of the rules, as `silence`")
    parser.add_argument("--stride", type=int, default=1, help="try every so many-th change only")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="what is run against each")
    parser.add_argument("--judged", type=Path, default=JUDGED, help="the survivors that may be, and why")
    options = parser.parse_args(argv)
    judged = judgements(options.judged)
    assert not set(sys.modules) & set(MODULES.values()), "the rules are in memory already"
    with tempfile.TemporaryDirectory(prefix="pulse-mutants-") as place:
        prepare(place)
        reach = recorded(options.tests, Path(place) / "reach")
        outcomes = []
        for change in chosen(options.modules)[:: options.stride]:
            outcomes.append((change, outcome := attempt(change, reach)))
            if outcome != KILLED:
                tell(change, outcome, judged)
    return report(outcomes, judged)


def chosen(modules: Sequence[str]) -> list[Change]:
    """The changes of these modules, or of all."""
    files = {module: file_of(module) for module in MODULES if not modules or module in modules}
    return [one for module, file in files.items() for one in changes(module, file.read_text(), str(file))]


def judgements(path: Path) -> dict[str, str]:
    """The survivors that were looked at, and why each may be: a line of a change, then indented lines about it."""
    found: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith(" "):
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            name = line.strip()
            found[name] = ""
    if bare := [name for name, why in found.items() if not why]:
        raise SystemExit(f"{path}: no reason is given for {bare[0]!r}")
    return found


def tell(change: Change, outcome: str, judged: Mapping[str, str]) -> None:
    """Print a mutant that lived, and why it may."""
    file = file_of(change.module).relative_to(ROOT)
    why = judged.get(change.name)
    print(
        f"{outcome}: {file}:{change.line}: {change.name}\n    {f'judged: {why}' if why else 'NOT JUDGED'}",
        flush=True,
    )


def report(outcomes: Sequence[tuple[Change, str]], judged: Mapping[str, str]) -> int:
    """Print the table, and which judgements are about nothing; 1 if a mutant that lived is not judged."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for change, outcome in outcomes:
        table[change.module][outcome] += 1
    print(f"{'module':<20}{'mutants':>10}" + "".join(f"{outcome:>12}" for outcome in OUTCOMES))
    for module, counts in [*table.items(), ("all", sum(table.values(), Counter[str]()))]:
        print(f"{module:<20}{counts.total():>10}" + "".join(f"{counts[outcome]:>12}" for outcome in OUTCOMES))
    dead = {change.name for change, outcome in outcomes if outcome == KILLED}
    for name in dead & set(judged):
        print(f"judged, but killed by now: {name}")
    lived = {change.name for change, _ in outcomes} - dead
    print(
        f"mutants: {len(lived)} of {len(outcomes)} lived, {len(lived - set(judged))} of them not judged",
        flush=True,
    )
    return 1 if lived - set(judged) else 0


if __name__ == "__main__":
    sys.exit(main())
