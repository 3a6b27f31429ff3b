"""Survival has its own share of descriptors: of many, thirty-two; of few, a quarter."""

import errno
import os
import resource
import time
from contextlib import ExitStack
from typing import NoReturn

import pytest

from pulse_adapters.workers.descriptor_share import SpareDescriptor, are_descriptors_scarce
from tests.descriptors import take_descriptors


@pytest.mark.parametrize(
    ("free", "shares", "scarce"), [(64, 2, False), (63, 2, True), (32, 1, False), (31, 1, True)]
)
def test_they_are_scarce_once_fewer_than_the_shares_are_free(
    monkeypatch: pytest.MonkeyPatch, free: int, shares: int, scarce: bool
) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: [""] * (1024 - free))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert are_descriptors_scarce(shares) is scarce


def test_they_are_where_none_is_left_to_look_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "listdir", refuse)
    assert are_descriptors_scarce()


def test_the_spare_one_is_waited_for_that_another_thread_was_quicker_to_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spare, others = SpareDescriptor(), list[int]()

    def look() -> bool:
        os.close(os.open("/proc/self/stat", os.O_RDONLY))
        return True

    def look_while_another_begins() -> bool:
        look()
        others.append(os.open("/proc/self/stat", os.O_RDONLY))
        return True

    monkeypatch.setattr(time, "sleep", lambda _: os.close(others.pop()) if others else None)
    spare.hold()
    with ExitStack() as filled:
        take_descriptors(filled)
        assert spare.read(look_while_another_begins)
        assert spare.read(look)
        with pytest.raises(OSError, match="Too many open files"):  # it is held again
            os.open(os.devnull, os.O_RDONLY)


def test_a_look_is_made_again_if_another_thread_takes_what_was_given_up_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spare, others, looks = SpareDescriptor(), list[int](), list[str]()

    def look() -> bool:
        looks.append("look")
        if len(looks) == 2:  # the spare one has just been given up
            others.append(os.open("/proc/self/stat", os.O_RDONLY))
        os.close(os.open("/proc/self/stat", os.O_RDONLY))
        return True

    monkeypatch.setattr(time, "sleep", lambda _: os.close(others.pop()) if others else None)
    spare.hold()
    with ExitStack() as filled:
        take_descriptors(filled)
        assert spare.read(look)
    assert (len(looks), others) == (3, [])


def test_a_look_that_finds_none_for_long_fails() -> None:
    spare = SpareDescriptor()
    with ExitStack() as filled:
        take_descriptors(filled)
        spare.hold()  # there is none to hold, either
        with pytest.raises(OSError, match="Too many open files"):
            spare.read(lambda: os.open(os.devnull, os.O_RDONLY))
