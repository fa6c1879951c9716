import asyncio

from dependency_injector import containers, providers

from axolotl_core import resource, tool
from axolotl_server import connect

PAGE = """<!doctype html>
<title>Clock</title>
<p id="time">…</p>
<script type="module">
  const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", ({ data, source }) => {
    if (source !== parent) return;
    if (data.id === 1) send({ method: "ui/notifications/initialized" });
    if (data.method === "ui/notifications/tool-result") {
      document.getElementById("time").textContent = data.params.structuredContent.time;
    }
  });
  send({
    id: 1,
    method: "ui/initialize",
    params: {
      protocolVersion: "2026-01-26",
      appInfo: { name: "clock", version: "1" },
      appCapabilities: {},
    },
  });
</script>
"""


@tool(app="ui://clock/page")
async def read_clock() -> dict[str, str]:
    """Tell the time."""
    return {"time": "12:00"}


@resource("ui://clock/page")
async def clock_page() -> str:
    """The page that shows the time."""
    return PAGE


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(read_clock))
    resources = providers.List(providers.Object(clock_page))


async def main() -> None:
    async with connect(Container()) as client:
        [tool_listed] = await client.list_tools()
        print(tool_listed["_meta"])
        [page] = (await client.read_resource("ui://clock/page")).contents
        print(page["mimeType"])
        print((await client.call("read_clock")).structured)


if __name__ == "__main__":
    asyncio.run(main())
