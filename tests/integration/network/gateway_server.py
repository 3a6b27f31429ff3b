"""A server on loopback that speaks as LiteLLM's proxy and OpenClaw's gateway document their health endpoints."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager

from tests.integration.network.network_servers import page_server

Pages = MutableMapping[str, tuple[int, object]]
"""By the path, the status and the body of its answer."""

LITELLM: Pages = {
    "/health/liveliness": (200, "I'm alive!"),
    "/health/readiness": (200, {"status": "healthy", "db": "Not connected"}),
    "/health": (
        200,
        {
            "healthy_endpoints": [{"model": "azure/gpt-4o-mini", "x-ms-region": "East US"}],
            "unhealthy_endpoints": [],
            "healthy_count": 1,
            "unhealthy_count": 0,
        },
    ),
}
OPENCLAW: Pages = {
    "/healthz": (200, {"ok": True, "status": "live"}),
    "/readyz": (200, {"ready": True, "failing": [], "uptimeMs": 9}),
}


@asynccontextmanager
async def gateway(pages: Pages, key: str = "") -> AsyncIterator[str]:
    """Serve these pages, `/health` only to who has the key; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = request.split()[1]
        status, body = pages.get(path, (404, {"detail": "Not Found"}))
        if path == "/health" and f"authorization: bearer {key}\r\n" not in request.lower():
            status, body = 401, {"error": {"message": "Authentication Error, No api key passed in."}}
        told = json.dumps(body).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(told), told))

    async with page_server(serve) as port:
        yield f"http://127.0.0.1:{port}"
