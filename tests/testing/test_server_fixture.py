"""`axolotl_server`: a process that is ready, drains, and shows its log when a test fails."""

import pytest

from tests.testing.conftest import RunTests

pytestmark = pytest.mark.slow


def test_a_server_is_ready_and_drained(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """The process serves the project with its profile, other settings, and workers; a running call is drained."""
    pytester.makepyfile(
        slow_container="""
        import asyncio, sys
        from pathlib import Path
        from dependency_injector import containers, providers
        from axolotl_core import tool

        @tool
        async def wait() -> str:
            print("x" * 200_000, file=sys.stderr)
            Path("started").touch()
            await asyncio.sleep(0.3)
            return "done"

        class Container(containers.DeclarativeContainer):
            tools = providers.Object([wait])
        """
    )
    result = run_tests(
        """
        import asyncio, os
        from pathlib import Path
        from mcp.client.client import Client
        from tests.support.servers.server_process import answer_to

        async def test_official_client(axolotl_server, monkeypatch):
            monkeypatch.setenv("AXOLOTL_SERVER__NAME", "ignored")
            async with axolotl_server(settings={"authorization": {"default": "allow"}}) as server:
                async with Client(server.url) as client:
                    listed = await client.list_tools()
                    assert {tool.name for tool in listed.tools} == {"track_order", "restock"}
                    assert client.server_info.name == "tested"
                assert str(server.port) in server.url and os.getpgid(server.pid) == server.pid
                assert "serves" in server.log
            assert "stopped" in server.log

        async def test_variables_and_workers(axolotl_server):
            env = {"AXOLOTL_LOG__FORMAT": "json"}
            async with axolotl_server(workers=2, profile=None, env=env) as server:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.close()

        async def test_drain(axolotl_server):
            settings = {"authorization": {"default": "allow"}}
            async with axolotl_server("slow_container:Container", settings=settings) as server:
                call = asyncio.ensure_future(answer_to(server.port, "wait"))
                while not Path("started").exists():
                    await asyncio.sleep(0.01)
            assert (await call)["content"][0]["text"] == "done"
            assert "(a line of more than 65536 bytes)" in server.log
        """
    )
    result.assert_outcomes(passed=3)


def test_failures_show_the_log(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    """A failed test, a server that does not start, and one that does not stop show the log of the server."""
    pytester.makepyfile(
        stuck_container="""
        import os, signal, sys
        from dependency_injector import containers, providers
        from axolotl_core import tool

        @tool
        async def end() -> str:
            print("the end", file=sys.stderr, flush=True)
            os._exit(7)

        class Container(containers.DeclarativeContainer):
            settings = providers.Object({"http": {"drain_seconds": 0.1}})
            tools = providers.Object([end])
        """
    )
    result = run_tests(
        """
        import asyncio, json, os, signal, urllib.request
        import pytest

        OFF = {"authorization": {"default": "allow"}, "http": {"drain_seconds": 0}}

        async def test_failing(axolotl_server):
            async with axolotl_server() as server:
                assert False, "the test itself"

        async def test_no_start(axolotl_server):
            async with axolotl_server("missing_container:Container"): ...

        async def test_crash(axolotl_server):
            async with axolotl_server("stuck_container:Container", settings=OFF) as server:
                os.kill(server.pid, signal.SIGKILL)

        async def test_hang(axolotl_server, monkeypatch):
            monkeypatch.setattr("axolotl_testing.servers._MARGIN_SECONDS", 0.5)
            async with axolotl_server("stuck_container:Container", settings=OFF) as server:
                os.kill(server.pid, signal.SIGSTOP)

        async def test_too_slow(axolotl_server):
            async with axolotl_server(start_seconds=0.001): ...
        """
    )
    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: the test itself",
            "*Captured axolotl server log call*",
            "*tested serves 2 tools at http://127.0.0.1:*/mcp",
            "The server ended with exit code 2 before it was ready; the report shows its log",
            "*Captured axolotl server log call*",
            "*Module 'missing_container' not found*",
            "The server stopped with exit code -9; the report shows its log",
            "The server did not stop within 0.5 seconds and was killed; the report shows its log",
            "The server is not ready after 0.001 seconds; the report shows its log",
        ]
    )
