import asyncio

import uvicorn
from greeter import Container

from axolotl_server import ServerHost, make_app


async def main(port: int = 8000) -> None:
    async with ServerHost(Container()) as host:
        app = make_app(host)
        config = uvicorn.Config(app, port=port, lifespan="off", ws="none", access_log=False)
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main())
