"""What may come next on a command line: commands, options, and the values that somebody knows."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import typer

from pulse_adapters.config.home import Home
from pulse_adapters.config.instances import home_called
from pulse_core.model.errors import PulseError


class Candidate(NamedTuple):
    """A word that would fit, and what it is."""

    word: str
    about: str = ""


Source = Callable[[Home, str], Iterable[Candidate]]
"""Candidates in a home for a word that is begun; those that don't fit are left out afterwards."""


@dataclass
class Place:
    """Where a command line stands. path: the commands so far; wanting: the option whose value comes next."""

    command: Any
    path: tuple[str, ...] = ()
    given: set[str] = field(default_factory=set)
    arguments: int = 0
    wanting: Any = None
    only_arguments: bool = False

    def past(self, word: str) -> "Place | None":
        """The place after one more word; None if that means nothing here."""
        if self.wanting is not None:
            self.wanting = None
        elif word == "--":
            self.only_arguments = True
        elif word.startswith("-") and not self.only_arguments:
            self._take_option(word)
        elif commands := getattr(self.command, "commands", None):
            return Place(commands[word], (*self.path, word)) if word in commands else None
        else:
            self.arguments += 1
        return self

    def _take_option(self, word: str) -> None:
        name, equals, _ = word.partition("=")
        option = self.option(name)
        self.given.update(option.opts if option else ())
        self.wanting = option if option and takes_value(option) and not equals else None

    def params(self, kind: str) -> list[Any]:
        """The command's `option`s or `argument`s."""
        context = typer.Context(self.command, resilient_parsing=True)
        return [param for param in self.command.get_params(context) if param.param_type_name == kind]

    def option(self, name: str) -> Any:
        """The option of this name, or None."""
        named = (one for one in self.params("option") if name in (*one.opts, *one.secondary_opts))
        return next(named, None)

    def argument(self) -> Any:
        """The argument that comes next, or None."""
        arguments = self.params("argument")
        return arguments[self.arguments] if self.arguments < len(arguments) else None


def takes_value(option: Any) -> bool:
    """Whether a word follows it."""
    return not option.is_flag and not option.count


def candidates(root: Any, line: str, sources: Mapping[str, Source]) -> list[Candidate]:
    """What may stand at the end of a command line; nothing where the shell knows better, as for files.

    root: the command tree; sources: by the path of a command, without its first word, and the parameter's name.
    """
    words, begun = split(line)
    place: Place | None = Place(root)
    for word in words[1:]:
        place = place.past(word) if place else None
    if place is None:
        return []
    found = _answered(place, begun, _home(words), sources)
    return [one for one in dict.fromkeys(found) if one.word.startswith(begun)]


def _answered(
    place: Place, begun: str, home: Home | None, sources: Mapping[str, Source]
) -> Iterator[Candidate]:
    name, equals, value = begun.partition("=")
    is_option = begun.startswith("-") and not place.only_arguments
    if place.wanting is not None:
        yield from _values(place, place.wanting, begun, home, sources)
    elif is_option and equals:
        if option := place.option(name):
            for one in _values(place, option, value, home, sources):
                yield Candidate(f"{name}={one.word}", one.about)
    elif is_option:
        yield from _options(place)
    elif commands := getattr(place.command, "commands", None):
        yield from (
            Candidate(name, one.get_short_help_str()) for name, one in commands.items() if not one.hidden
        )
    elif argument := place.argument():
        yield from _values(place, argument, begun, home, sources)
    else:
        yield from _options(place)


def _options(place: Place) -> Iterator[Candidate]:
    """Options by their first long name; those given already only if they may be given again."""
    for option in place.params("option"):
        if not option.hidden and (option.multiple or not place.given & set(option.opts)):
            names = sorted(option.opts, key=lambda name: not name.startswith("--"))[:1]
            yield from (Candidate(name, option.help or "") for name in (*names, *option.secondary_opts))


def _values(
    place: Place, param: Any, begun: str, home: Home | None, sources: Mapping[str, Source]
) -> Iterator[Candidate]:
    source = sources.get(" ".join((*place.path, param.name))) or sources.get(param.name)
    if source is None or home is None:
        return
    try:
        yield from source(home, begun)
    except (PulseError, OSError):  # nothing is known there, and a prompt is no place for complaints
        return


def _home(words: Sequence[str]) -> Home | None:
    """The home that the words name, or else the usual one; None if that can't be."""
    try:
        if name := _said(words, "--instance"):
            return Home.resolve(home_called(name))
        return Home.resolve(_said(words, "--home"))
    except PulseError:
        return None


def _said(words: Sequence[str], option: str) -> str | None:
    """The value that the words give an option, or None."""
    said = None
    for word, behind in zip(words, (*words[1:], None), strict=False):
        if word == option:
            said = behind
        elif word.startswith(f"{option}="):
            said = word.partition("=")[2]
    return said


def split(line: str) -> tuple[list[str], str]:
    """The whole words of a command line, and the one that is begun; quotes may be open."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(iter(lexer.get_token, None))
    except ValueError:  # a quote is open: the word goes on
        return words, lexer.token
    if not words or (line[-1:].isspace() and not words[-1].endswith(line[-1])):
        return words, ""
    return words[:-1], words[-1]
