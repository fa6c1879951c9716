"""Completion calls: methods of objects, conversion of values, and concurrent calls."""

import asyncio
from collections.abc import Mapping
from typing import Any

from axolotl_core import Context, IPrompt, NoArguments, prompt, prompts_of, resource, resources_of
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.prompts import PromptOutput
from tests.support.peers.memory_peer import Peer, container_with, conversing


def wanted(name: str, argument: str, value: str = "", **known: str) -> Mapping[str, Any]:
    return {
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": value},
        "context": {"arguments": known},
    }


def values_of(reply: Any) -> list[str]:
    values: list[str] = reply["result"]["completion"]["values"]
    return values


class Library:
    """Completes its own items, for prompts and templates."""

    def __init__(self, *books: str) -> None:
        self._books = books

    @prompt
    def lend(self, book: str) -> str:
        """Lend a book."""
        return book

    @resource("books://{book}")
    def open(self, book: str) -> str:
        """Open a book."""
        return book

    @lend.completes("book")
    @open.completes("book")
    def held(self, value: str) -> list[str]:
        return [book for book in self._books if book.startswith(value)]


async def test_objects_complete_for_themselves() -> None:
    """Methods of two objects complete their own items."""
    small, large = Library("atlas"), Library("bible", "biography")
    lends = [prompts_of(library)[0] for library in (small, large)]
    lends[1].name = "lend_large"
    async with conversing(container_with(prompts=lends, resources=resources_of(small))) as host:
        peer = Peer(host)
        assert values_of(await peer.ask("completion/complete", wanted("lend", "book"))) == ["atlas"]
        assert values_of(await peer.ask("completion/complete", wanted("lend_large", "book", "bib"))) == ["bible"]
        reference = {"type": "ref/resource", "uri": "books://{book}"}
        params = {"ref": reference, "argument": {"name": "book", "value": "at"}}
        assert values_of(await peer.ask("completion/complete", params)) == ["atlas"]


async def test_numbers_become_strings() -> None:
    """Numbers are converted to strings."""

    @prompt
    def count(number: int) -> str:
        """Count."""
        return str(number)

    @count.completes("number")
    async def numbers(value: str) -> list[Any]:
        return [1, 2]

    async with conversing(container_with(prompts=(count,))) as host:
        assert values_of(await Peer(host).ask("completion/complete", wanted("count", "number"))) == ["1", "2"]


async def test_many_users_type_at_once() -> None:
    """Concurrent completions have their own arguments."""

    @prompt
    def choose(colour: str, thing: str) -> str:
        """Choose."""
        return thing

    @choose.completes("thing")
    async def things(value: str, known: Mapping[str, str]) -> list[str]:
        await asyncio.sleep(0)
        return [f"{known['colour']} {value}"]

    async with conversing(container_with(prompts=(choose,))) as host:
        peer = Peer(host)
        for number in range(100):
            peer.send("completion/complete", wanted("choose", "thing", "hat", colour=str(number)), id=number)
        replies = [await peer.receive() for _ in range(100)]
        assert {reply["id"]: values_of(reply) for reply in replies} == {n: [f"{n} hat"] for n in range(100)}


async def test_a_prompt_without_arguments_has_nothing_to_complete() -> None:
    """Completing a prompt without arguments is an error that says so."""

    class Silent(IPrompt[NoArguments]):
        name = "silent"

        async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
            assert context.cancel_reason is not CancelReason.CLIENT
            return ""

    async with conversing(container_with(prompts=(Silent(),))) as host:
        reply = await Peer(host).ask("completion/complete", wanted("silent", "word"))
        assert reply["error"]["message"] == "Invalid params: there is no argument 'word'; available: none"
