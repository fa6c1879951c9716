import asyncio
import sys

import httpx2
from till import Container

from axolotl_server import InProcessClient, ServerHost, make_app

SETTINGS = {"metrics": {"enabled": True}}


async def main(wanted: str) -> None:
    async with ServerHost(Container(), flags=SETTINGS) as host:
        client = InProcessClient(host.handler)
        for cents in (250, 990, "all"):
            await client.call("charge", {"customer": "Ada", "cents": cents})
        served = httpx2.ASGITransport(make_app(host))
        async with httpx2.AsyncClient(transport=served, base_url="http://localhost") as http:
            page = (await http.get("/metrics")).text
    print(*(line for line in page.splitlines() if line.startswith(wanted)), sep="\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
