"""Why something is as it is, and the story of an effect, as trees with times."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from pulse_core.model.durations import duration_text
from pulse_core.model.text import count, one_line, quoted
from upulse_cli.time_args import local
from upulse_cli.views.effects import COLOURS
from upulse_cli.views.events import said, with_subject
from upulse_cli.views.incidents import LAST_RUN
from upulse_cli.views.status import held_for, since_words

Told = Mapping[str, Any]
PULSE, NOTHING = "pulse", "nothing was done about it yet"


def tree(story: Told) -> RenderableType:
    """How what was asked for is now; and an effect from what made a rule wish for it to what followed."""
    about = story["about"]
    if story["effect"] is None:
        standing = _standing(about)
        return standing if about["kind"] in (PULSE, "task") else Group(standing, Text(NOTHING, style="dim"))
    return Group(_standing(about), _effect(story)) if about else _effect(story)


def _standing(about: Told) -> Tree:
    """How it is now, and why."""
    what = about["name"] if about["kind"] == PULSE else f"{about['kind']} {about['name']}"
    head = Text.assemble((one_line(what), "bold"), f"  {about['state']}")
    if about["since"]:
        head.append(f"  {since_words(about['since'], about['state'])}")
    drawn = Tree(head, guide_style="dim")
    for line in _standing_lines(about):
        drawn.add(Text(one_line(line)))
    return drawn


def _standing_lines(about: Told) -> Iterator[str]:
    yield from filter(None, [about["why"]])
    held, since = about.get("held_by"), about.get("held_since")
    if since:
        told = {"since": since, "or_earlier": about.get("held_or_earlier")}
        yield f"held back since {held_for(told)} by {held}"
    elif held and held not in about["why"] and "Pulse is paused" not in about["why"]:
        yield f"held back by {held}"
    if incident := about.get("incident"):
        # It may have been well between the first time and the last one.
        is_again, after = incident["times"] > 1, incident["began_after"]
        first, began = f"the first of {incident['times']} times", local(incident["began"])
        since = f"{first} at {began}" if is_again else f"since {began}"
        if after:  # that it is ongoing since a time of which two are told would say that it is over
            since = f"{first if is_again else 'it began'} between {local(after)} and {began}"
        known = f" {LAST_RUN}" if about["state"] == "unknown" else ""
        comma = "," if known or is_again or after else ""
        yield f"incident ongoing{known}{comma} {since}; all of it: upulse incidents"
    if request := about.get("request"):
        yield f"last request: {_requested(request)}, at {local(request['at'])}"
    for one in about.get("conditions", ()):
        yield f"{one['name']} ({one['state']}) since {local(one['since'])}: {one['evidence']}"
    for measure in about.get("measures", ()):
        yield f"tried at {local(measure['at'])}: {measure['action']} ({measure['outcome']})"
    if about["kind"] == "silence":
        yield f"by {about['by']}" + (f", until {local(about['ends'])}" if about["ends"] else "")
        held = [f"{one['key']}: {one['reason']}" for one in about["holds_back"]]
        yield from (f"holds back {words}" for words in held)
        if not held:
            yield "holds back nothing now"
    elif about["kind"] == "condition":
        yield from (f"next: {words}" for words in about["next"])
    if about["kind"] == "silence" and about["next"]:
        yield f"begins the next time at {local(about['next'])}"


def _requested(request: Told) -> str:
    """What a person asked of a process, in words."""
    verb = request["kind"].removeprefix("process-").removesuffix("-requested")
    why = (request["data"] or {}).get("why", "")
    return f"{request['actor']} requested a {verb}{f': {why}' if why else ''}"


def _effect(story: Told) -> Tree:
    """From what made a rule wish for it to what followed, each with its milliseconds since the beginning."""
    effect = story["effect"]
    head = Text.assemble(
        (one_line(effect["key"]), "bold"),
        "  ",
        (effect["state"], COLOURS[effect["state"]]),
        f"  {effect['id']}",
    )
    drawn = Tree(head, guide_style="dim")
    for line in _lines(story):
        drawn.add(line)
    for words in story["missing"]:
        drawn.add(Text(f"missing  {one_line(words)}", style="yellow"))
    return drawn


def _lines(story: Told) -> Iterator[Text | Tree]:
    if (origin := story["origin"]) and origin["kind"] == "effect":
        yield Text(one_line(f"follows  {origin['kind']} {origin['subject']}  {origin['id']}"), style="dim")
    yield Text(one_line(f"begins with  {_beginning(story)}"))
    for _, line in sorted(_steps(story), key=lambda step: step[0]):
        yield line


def _beginning(story: Told) -> str:
    """What made somebody wish for it: an event, a person, or a rule alone."""
    effect, seen = story["effect"], story["seen"]
    if seen:
        if seen["kind"].endswith("-requested") and seen["kind"].startswith("process-"):
            return f"{_requested(seen)} ({seen['subject']})"
        by = "" if seen["actor"] == "pulse" else f"  by {seen['actor']}"
        return f"{seen['kind']} {with_subject(seen)}{by}"
    if effect["rule"]:
        return f"rule {effect['rule']}: {effect['reason']}"
    return f"a request of {story['wish']['actor']}"


def _steps(story: Told) -> Iterator[tuple[float, Text | Tree]]:
    """Each step with its time; two of the same time in this order."""
    for sample in story["samples"]:
        yield _step(sample, "sample", f"{sample['key']} #{sample['id']}  {sample['words']}")
    if seen := story["seen"]:
        yield _step(seen, seen["kind"], f"{with_subject(seen)}  (row {seen['seq']})")
        for line in quoted((seen["data"] or {}).get("printed", "")).splitlines():
            yield _step(seen, "", line)
    if tick := story["tick"]:
        yield tick["ms"], _tick(tick, story["effect"]["rule"], _subjects(story))
    wish = story["wish"]
    yield wish["ms"], _wish(wish, story["effect"])
    for number, attempt in enumerate(story["attempts"], start=1):
        yield attempt["ms"], _attempt(number, attempt, number == len(story["attempts"]))
    if (outcome := story["outcome"]) and not story["attempts"]:
        yield _step(outcome, outcome["kind"], said(outcome))
    if followed := story["followed"]:
        yield _step(followed, followed["kind"], with_subject(followed))


def _step(one: Told, what: str, words: str) -> tuple[float, Text]:
    return one["ms"], _at(one["ms"], what, words)


def _at(ms: float, what: str, words: str) -> Text:
    colour = COLOURS.get(what.removeprefix("effect-"), "")
    return Text.assemble(
        (f"{duration_text(ms * 1000):>9}  ", "dim"), (f"{what:<13} ", colour or "bold"), one_line(words)
    )


def _subjects(story: Told) -> frozenset[str]:
    """The names of what the effect concerns: its key, and what its params and the event that it began with name."""
    effect, about, seen = story["effect"], story["about"], story["seen"]
    params = effect["params"]
    names = {effect["key"], *filter(None, (params.get("process"), params.get("for_condition")))}
    names |= {row[word] for row, word in ((about, "name"), (seen, "subject")) if row and row[word]}
    names |= {effect["key"].partition(":")[2] or effect["key"]}
    return frozenset(map(str, names))


def _concerns(note: str, subjects: frozenset[str]) -> bool:
    words = [word.strip(":.,;()'\"") for word in note.split()]
    return not subjects.isdisjoint(part for word in words for part in (word, *word.split(":")))


def _tick(tick: Told, rule: str, subjects: frozenset[str]) -> Tree:
    """The tick with the rules that had something to say of the effect, and how many others there were."""
    snapshot = "snapshot kept" if tick["snapshot_kept"] else "snapshot not kept"
    words = f"{tick['number']}, woken by {tick['woken_by']}, took {tick['took_ms']:.1f} ms, {snapshot}"
    drawn, passed = Tree(_at(tick["ms"], "tick", words)), 0
    for layer in reversed(tick["layers"]):
        is_own, failed = layer["rule"] == rule, layer["outcome"] == "error"
        notes = [note for note in layer["notes"] if failed or _concerns(note, subjects)]
        if is_own and not notes:  # a rule may say why without a name
            notes = layer["notes"]
        if notes or is_own or failed:
            # What it dropped besides is another effect.
            did = "added" if is_own and layer["outcome"] == "dropped" else layer["outcome"]
            drawn.add(Text(one_line(f"{layer['rule']} {did}  {'; '.join(notes)}".rstrip())))
        else:
            passed += 1
    if passed:
        drawn.add(Text(f"{count(passed, 'rule')} passed it on", style="dim"))
    return drawn


def _wish(wish: Told, effect: Told) -> Tree:
    lost = effect["action"] is None
    who = f"rule {effect['rule']}" if effect["rule"] else wish["actor"]
    action = "an action that can't be read any more" if lost else effect["action"]
    drawn = Tree(
        _at(wish["ms"], "effect", f"{action}, requested by {who} at {local(wish['at'], named=True)}")
    )
    if effect.get("damaged"):
        drawn.add(Text(one_line(f"damaged: {effect['damaged']}"), style="red"))
    if effect["reason"]:
        drawn.add(Text(one_line(f"because {effect['reason']}")))
    if lost:
        return drawn
    drawn.add(Text(one_line(f"params {json.dumps(effect['params'], ensure_ascii=False)}"), style="dim"))
    return drawn


def _attempt(number: int, attempt: Told, is_last: bool) -> Tree | Text:
    end = attempt["end"]
    if end is None:
        how = "not ended yet" if is_last else "the daemon ended meanwhile"
        return _at(attempt["ms"], "executing", f"attempt {number}, {how}")
    drawn = Tree(_at(attempt["ms"], "executing", f"attempt {number}"))
    drawn.add(_at(end["ms"], end["kind"].removeprefix("effect-"), said(end)))
    return drawn
