"""A prober with a real child, which trusts the tests' own authority."""

from collections.abc import AsyncIterator

import pytest

from pulse_adapters.network.prober import ChildProber
from tests.integration.network.network_servers import CERTIFICATES


@pytest.fixture
async def prober(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChildProber]:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "authority.pem"))
    one = ChildProber()
    yield one
    one.close()
