"""The child process: confines itself, loads the engine, and answers requests until its pipe is closed.

Descriptors 1 and 2 receive what is printed; the others are those that every host has.
"""

import gc
import io
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pulse_adapters.workers.import_trim  # noqa: F401 - before all that loads pydantic
from pulse_adapters.rule_host.child_state import SnapshotReplica, UserProjection
from pulse_adapters.rule_host.loader import RulesNotLoadable, load
from pulse_adapters.rule_host.profiling import Profile
from pulse_adapters.rule_host.rule_fold import RuleFold
from pulse_adapters.rule_host.time_budget import TimeBudget
from pulse_adapters.sandbox.confinement import confine_process
from pulse_adapters.workers import child_side, host_side
from pulse_adapters.workers.framing import (
    COMMAS_OF_FOLD,
    LARGEST_FOLD,
    LARGEST_REPLY,
    LARGEST_REQUEST,
    Frames,
    Message,
)
from pulse_adapters.workers.host_messages import encode
from pulse_adapters.workers.source_locations import Places, roots_of_plugins
from pulse_core.model.event import Event
from pulse_core.projections.state import Snapshot

PRINTED = 2
_MOST_FAULTS = 50
_ENOUGH, _ONE = LARGEST_REPLY // 4, LARGEST_REPLY * 7 // 10
"""Bytes of what is told of recorded ticks, after which a reply is sent; and of what is told of one."""


class DiscardedOutput(io.TextIOBase):
    """`sys.stdout` of the authors' code: never blocks; what can't be written is lost."""

    def write(self, text: str) -> int:
        """Write the text, truncated to 4096 characters."""
        with suppress(OSError):
            os.write(PRINTED, text[:4096].encode("utf-8", "replace"))
        return len(text)


class RuleHostChild:
    """Answers requests, each by a method."""

    def __init__(self, begin: Message) -> None:
        self._begin, self.faults = begin, list[tuple[str, str]]()
        self.budget = TimeBudget(host_side.shared())
        plugins = begin["plugins"]
        roots = {begin["root"]: "", **roots_of_plugins(plugins)}
        self.places = Places(roots)
        self.replica = SnapshotReplica(begin["prev"])
        os.chdir(begin["root"])
        child_side.join_group(begin["group"])
        self.held = confine_process(roots, begin["scratch"], begin["memory"], begin["user"])

    def load(self, until: float) -> Message:
        """Load the authors' code until then, for the first time; what there is. Raises RulesNotLoadable."""
        begin = self._begin
        self.budget.begin(until)
        contents = load(begin["root"], begin["plugins"], self.budget, self.places, self.report)
        first = len(contents.rules)
        self.projections = {
            name: UserProjection(name, projection, first + place, self.budget, self.places)
            for place, (name, projection) in enumerate(contents.projections.items())
        }
        profile = Profile(self.places, lambda words: self.report("advice", words))
        self.rules = RuleFold(
            contents.rules, self.budget, self.places, self.report, profile if begin["dev"] else None
        )
        units = (*contents.rules.values(), *(one.step for one in contents.projections.values()))
        return {
            "rules": list(contents.rules),
            "projections": {
                name: (own.version, own.projection.kinds) for name, own in self.projections.items()
            },
            "watchers": contents.watchers,
            "executors": contents.executors,
            "plugins": contents.plugins,
            "defined": [self.places.of_code(unit) for unit in units],
        }

    def report(self, whose: str, message: str) -> None:
        """Keep a fault for the next reply."""
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append((whose, message))

    def answer(self, request: Message) -> Message | None:
        """The reply to a request; None if it needs none."""
        match request["do"]:
            case "fold":
                self.budget.begin(request["until"])
                return self._answered(*self._moved(request))
            case "replay":
                return self._replay(request["ticks"], request["seconds"])
            case "feed":
                self.replica.take(request["events"])
            case "stand":
                self.budget.begin(request["until"])
                self._moved(request)
            case "skip":
                self.rules.skip(request["rules"])
            case "resume":
                self.projections[request["name"]].resume(request["seq"], request["state"])
            case "history":
                return self._history(request)
            case "keep":
                return self._kept(request["name"])
        return None

    def _moved(self, request: Message) -> tuple[Snapshot, Snapshot]:
        """The last snapshot and the new one."""
        self.replica.take(request["events"])
        upto = request["seq"] + request["provisional"]
        events = self.replica.due(upto)
        return self.replica.move(request, events, self._projected(events, request["seq"]))

    def _projected(self, events: Sequence[Event], upto: int) -> Mapping[str, Any]:
        """The values of the authors' projections by name, as rules get them, after these events."""
        for own in self.projections.values():
            own.take(events, upto, self.report)
        return {name: own.value for name, own in self.projections.items()}

    def _answered(self, prev: Snapshot, curr: Snapshot) -> Message:
        answer = self.rules.fold(prev, curr)
        answer["faults"], self.faults[:] = list(self.faults), []
        return answer

    def _replay(self, ticks: Sequence[Message], seconds: float) -> Message:
        """Fold recorded ticks, each with a deadline of its own, as many as fit into one reply.

        The reply holds those with a result; done: how many were folded.
        """
        told, size, done = [], 0, 0
        outcomes, passed = Counter[tuple[str, str]](), Counter[tuple[str, ...]]()
        for tick in ticks:
            done += 1
            if (answer := self._refolded(tick, seconds)) is None:
                passed[self.rules.fast_path.names] += 1
                continue
            outcomes.update((rule, outcome) for rule, outcome, *_ in answer["layers"])
            if answer["effects"] or answer["faults"]:
                answer["layers"] = ()
                took = len(encode(answer))
                told.append((tick["tick"], answer if took < _ONE else _shortened(answer)))
                if (size := size + took) > _ENOUGH:
                    break
        for names, times in passed.items():
            outcomes.update({(name, "passed"): times for name in names})
        return {
            "told": told,
            "outcomes": [(*both, times) for both, times in outcomes.items()],
            "done": done,
        }

    def _refolded(self, tick: Message, seconds: float) -> Message | None:
        """The result of a recorded tick; None if no rule did anything."""
        if "skip" in tick:
            self.rules.skip(tick["skip"])
        until = time.monotonic() + seconds
        self.budget.begin(until)
        prev, curr = self._moved(tick)
        if not self.faults and self.rules.fast_path.passes(prev, curr, seconds):
            return None
        self.budget.begin(until)
        return self._answered(prev, curr)

    def _history(self, request: Message) -> Message:
        """Fold earlier events into the authors' projections; the last batch ends at the replica's row."""
        self.budget.begin(request["until"])
        self.replica.take(request["events"])
        values = self._projected(self.replica.due(request["upto"]), request["upto"])
        self.replica.snapshot = replace(self.replica.snapshot, own=values)
        return {}

    def _kept(self, name: str) -> Message:
        """The state of an author's projection; None if it was stopped, or contains provisional events."""
        own = self.projections[name]
        if own.broken or own.seq > self.replica.snapshot.state.seq:
            return {"kept": None}
        return {"kept": [own.version, own.seq, own.text.decode()]}


def _send(message: Message) -> None:
    frame = encode(message)
    is_fold = "layers" in message
    most = LARGEST_FOLD if is_fold else LARGEST_REPLY
    if len(frame) > most or (is_fold and frame.count(b",") > COMMAS_OF_FOLD):
        frame = encode(_shortened(message, most))
    child_side.write(frame)


def _shortened(message: Message, most_bytes: int = LARGEST_REPLY) -> Message:
    """A short reply instead of one that is too long: it names who caused that, and has no effects."""
    sizes: dict[str, int] = {}
    for effect in message.get("effects", ()):
        sizes[effect.rule] = sizes.get(effect.rule, 0) + len(encode(effect))
    for rule, _, notes, _ in message.get("layers", ()):
        sizes[rule] = sizes.get(rule, 0) + len(encode(notes))
    most = max(sizes, key=lambda name: sizes[name], default="")
    bounds = f"{most_bytes:,} bytes, or has more than {COMMAS_OF_FOLD:,} commas as JSON"
    words = f"what all rules say takes more than {bounds}; most of it is this rule's"
    fault = (f"rule:{most}", words) if most else ("engine", f"an answer of more than {most_bytes:,} bytes")
    left: Message = {"effects": [], "notes": [], "layers": [], "kept": None}
    left["faults"] = [fault]
    return {**message, **{name: left[name] for name in left if name in message}}


def main() -> None:
    """Run the child until the daemon is gone; that has a higher CPU priority."""
    host_side.begin(all_threads=False)
    sys.stdout = sys.stderr = DiscardedOutput()
    os.nice(5)
    requests = host_side.requests(Frames(LARGEST_REQUEST))
    begin = next(requests)
    if os.getppid() != begin["parent"]:
        os._exit(0)
    host = RuleHostChild(begin)
    _send({"id": begin["id"], **host.held})
    del begin
    order = next(requests)
    try:
        _send({"id": order["id"], **host.load(order["until"])})
    except RulesNotLoadable as error:
        _send({"id": order["id"], "error": str(error)})
        os._exit(1)
    gc.collect()
    gc.freeze()  # what is loaded stays, and is not searched for garbage again and again
    gc.enable()
    for request in requests:
        if (answer := host.answer(request)) is not None:
            _send({"id": request["id"], **answer})
    os._exit(0)


if __name__ == "__main__":
    main()
