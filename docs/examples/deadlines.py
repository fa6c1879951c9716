import asyncio
import time

from dependency_injector import containers, providers

from axolotl_core import Context, tool


# region kinds
@tool(timeout_seconds=0.5)
async def wait_for_news() -> str:
    """Runs on the event loop: cancelled at its next await."""
    await asyncio.Event().wait()
    return "news"


@tool(timeout_seconds=0.5, pool="reports")
def write_report(pages: int) -> str:
    """Runs in a thread of the pool `reports`: the caller gets an error, the thread runs on."""
    time.sleep(0.2 * pages)
    return f"{pages} pages"


@tool(timeout_seconds=0.5, execution="process")
def count_primes(below: int) -> int:
    """Runs in a process: the process is killed."""
    return sum(all(number % divisor for divisor in range(2, number)) for number in range(2, below))


# endregion kinds


# region progress
@tool(timeout_seconds=10, max_timeout_seconds=300)
async def index_archive(folders: list[str], context: Context) -> int:
    """Index folders: up to ten seconds for each, five minutes in total."""
    for number, folder in enumerate(folders, start=1):
        await read(folder)
        context.report_progress(number, len(folders), folder)
    return len(folders)


# endregion progress


# region queue
@tool(max_concurrency=4, queue_limit=20, queue_timeout_seconds=2)
async def ask_the_mainframe(question: str) -> str:
    """Four calls run at once; twenty more wait for up to two seconds; the rest are refused."""
    return await mainframe(question)


# endregion queue


async def read(folder: str) -> None: ...


async def mainframe(question: str) -> str:
    return f"{question}: 42"


class Container(containers.DeclarativeContainer):
    tools = providers.List(
        *map(providers.Object, (wait_for_news, write_report, count_primes, index_archive, ask_the_mainframe))
    )
