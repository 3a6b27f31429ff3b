"""What every store of objects promises."""

import hashlib

import pytest

from pulse_core.ports.stores import Objects


@pytest.mark.parametrize("blob", [b"", b"hello", bytes(range(256)) * 1000])
async def test_a_blob_comes_back_under_its_hash(objects: Objects, blob: bytes) -> None:
    name = await objects.put(blob)
    assert name == hashlib.sha256(blob).hexdigest()
    assert await objects.get(name) == blob


async def test_the_same_blob_may_be_put_again(objects: Objects) -> None:
    assert await objects.put(b"x") == await objects.put(b"x")


@pytest.mark.parametrize("name", ["0" * 64, "", "../../etc/passwd", "ABC"])
async def test_an_unknown_name_is_none(objects: Objects, name: str) -> None:
    assert await objects.get(name) is None
