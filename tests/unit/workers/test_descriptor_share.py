"""Survival has its own share of descriptors: of many, thirty-two; of few, a quarter."""

import errno
import os
import resource
from typing import NoReturn

import pytest

from pulse_adapters.workers.descriptor_share import are_descriptors_scarce


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
