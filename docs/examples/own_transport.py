import asyncio

from greeter import Container

from axolotl_server import make_handler
from axolotl_server.transports.stream_exchange import StreamExchange


async def main(port: int = 9000) -> None:
    async with make_handler(Container()) as handler:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            exchange = StreamExchange(handler, lambda message: writer.write(message + b"\n"))
            async for line in reader:
                exchange.receive(line)
            await exchange.close(drain_seconds=5)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", port, limit=4 * 1024 * 1024)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
