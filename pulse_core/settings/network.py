"""The network: what is asked, how often, and what no answer means."""

import re
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from pulse_core.model.durations import UNITS
from pulse_core.settings.groups import Duration, Group, HttpUrl, distinct, text_check

SECOND = UNITS["s"]

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,254}}$){_LABEL}(?:\.{_LABEL})*\.?")


def _server(text: str) -> str:
    address, _, port = text.partition("#")
    try:
        ip_address(address)
        if "#" in text and not (re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 65536):
            raise ValueError(port)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is no server; write its IP address, with a port as '127.0.0.1#5353'"
        ) from error
    return text


Host = Annotated[str, text_check(_HOST.fullmatch, "is no host name; write one as 'example.org'")]
Hosts = Annotated[tuple[Host, ...], AfterValidator(distinct)]
Urls = Annotated[tuple[HttpUrl, ...], AfterValidator(distinct)]
Servers = Annotated[tuple[Annotated[str, AfterValidator(_server)], ...], AfterValidator(distinct)]


class NetworkSettings(Group):
    """`[network]`: targets that are asked over and over; without any, the network is not watched."""

    dns: Hosts = Field((), description="names that are resolved", examples=[["one.example", "two.example"]])
    http: Urls = Field((), description="URLs that are fetched", examples=[["http://127.0.0.1:18080/"]])
    resolvers: Servers = Field(
        (),
        description="DNS servers, if not the system's: IP addresses, with a port as `127.0.0.1#5353`",
        examples=[["127.0.0.1#5353"]],
    )
    interval: Duration = Field(30 * SECOND, ge=SECOND // 10, description="time between two rounds")
    timeout: Duration = Field(5 * SECOND, gt=0, description="how long a target may take to answer")
    slow: Duration = Field(2 * SECOND, gt=0, description="latency from which an answer counts as slow")
    evidence: int = Field(
        3, ge=1, le=1000, description="rounds in a row that must agree before it is down, slow, or well again"
    )

    @model_validator(mode="after")
    def _bounds_agree(self) -> "NetworkSettings":
        if self.slow > self.timeout and "slow" not in self.model_fields_set:
            object.__setattr__(
                self, "slow", self.timeout
            )  # what nobody wrote gives way; it is being made still
        if self.slow > self.timeout:
            raise ValueError("slow is longer than timeout; lower slow or raise timeout")
        return self
