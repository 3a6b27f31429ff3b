"""A home whose daemon is down."""

from tests.integration.cli.conftest import quiet as quiet
