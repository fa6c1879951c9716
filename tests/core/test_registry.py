"""ToolRegistry: names, order and listeners."""

from collections.abc import Iterator

import pytest

from axolotl_core import ConfigurationError, ToolRegistry
from axolotl_core.registry import AnyTool
from tests.support.core.sample_tools import Add, Named


def names(registry: ToolRegistry) -> list[str]:
    """Return the registered names in order."""
    return [tool.name for tool in registry.get_all()]


@pytest.mark.parametrize(
    ("declared", "asked"),
    [
        pytest.param("echo", "echo", id="same"),
        pytest.param("echo", "ECHO", id="upper"),
        pytest.param("getUser", "getuser", id="camel"),
        pytest.param("straße", "STRASSE", id="sharp-s"),
        pytest.param("STRASSE", "straße", id="sharp-s-reversed"),
        pytest.param("ΣΊΣΥΦΟΣ", "σίσυφος", id="final-sigma"),
        pytest.param("ﬁle", "FILE", id="ligature"),
    ],
)
def test_lookup_ignores_case(declared: str, asked: str) -> None:
    """A tool is found by its name in any case, and keeps the spelling it was declared with."""
    tool = Named(declared)
    registry = ToolRegistry([tool])
    assert registry.try_get(asked) is tool
    assert asked in registry
    assert names(registry) == [declared]


@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param("echo", "Echo", id="ascii"), pytest.param("straße", "STRASSE", id="unicode")],
)
def test_the_first_of_a_name_wins(first: str, second: str) -> None:
    """A taken name is not replaced, ignoring case."""
    winner = Named(first)
    registry = ToolRegistry([winner])
    assert not registry.register(Named(second))
    assert registry.get_all() == (winner,)


def test_unknown_names() -> None:
    """An unknown name is not found."""
    registry = ToolRegistry([Add()])
    assert registry.try_get("ad") is None
    assert "ad" not in registry
    assert 5 not in registry


def test_listing_keeps_the_order_of_registration() -> None:
    """Tools are listed in the order of registration."""
    registry = ToolRegistry(map(Named, ["zed", "abel"]))
    registry.register_range(map(Named, ["mid", "ZED"]))
    assert names(registry) == ["zed", "abel", "mid"]
    assert len(registry) == 3


def test_a_range_answers_how_many_were_new() -> None:
    """Only new names are counted, also within the range."""
    registry = ToolRegistry([Named("a")])
    assert registry.register_range(map(Named, ["A", "b", "B", "c"])) == 2
    assert registry.register_range([]) == 0
    assert names(registry) == ["a", "b", "c"]


def test_a_range_with_a_bad_tool_adds_nothing() -> None:
    """If one tool is invalid, none is added."""
    registry = ToolRegistry([Named("a")])
    with pytest.raises(ConfigurationError):
        registry.register_range([Named("b"), Named("")])
    assert names(registry) == ["a"]


def test_a_range_that_fails_while_it_is_made_adds_nothing() -> None:
    """An iterator that raises half-way leaves the registry as it was."""

    def failing() -> Iterator[AnyTool]:
        yield Named("b")
        raise RuntimeError("half-way")

    registry = ToolRegistry([Named("a")])
    with pytest.raises(RuntimeError, match="half-way"):
        registry.register_range(failing())
    assert names(registry) == ["a"]


def test_unregister_removes_by_any_case() -> None:
    """Removing a tool frees its name."""
    registry = ToolRegistry(map(Named, ["a", "b"]))
    assert registry.unregister("A")
    assert not registry.unregister("a")
    assert registry.register(Named("A"))
    assert names(registry) == ["b", "A"]


def test_unregister_range_removes_at_once() -> None:
    """Several tools are removed in one change."""
    registry = ToolRegistry(map(Named, ["a", "b", "c"]))
    heard: list[list[str]] = []
    registry.on_change(lambda: heard.append(names(registry)))
    assert registry.unregister_range(["A", "x", "c"]) == 2
    assert registry.unregister_range(["a"]) == 0
    assert heard == [["b"]]


def test_a_listing_is_a_picture_of_its_moment() -> None:
    """A list from before a change stays unchanged."""
    registry = ToolRegistry([Named("a")])
    before = registry.get_all()
    registry.register(Named("b"))
    assert [tool.name for tool in before] == ["a"]


def test_adding_a_tool_copies_nothing() -> None:
    """Registering many tools one by one takes linear time, because no registration copies the earlier ones."""
    registry = ToolRegistry([Named("a")])
    content = registry._by_key
    registry.register(Named("b"))
    assert registry._by_key is content
    assert names(registry) == ["a", "b"]


def test_listeners_hear_of_changes_and_of_nothing_else() -> None:
    """A listener is called once for every change, after it happened."""
    registry = ToolRegistry()
    heard: list[list[str]] = []
    registry.on_change(lambda: heard.append(names(registry)))
    registry.register(Named("a"))
    registry.register(Named("A"))
    registry.register_range(map(Named, ["b", "c"]))
    registry.register_range([])
    registry.unregister("x")
    registry.unregister("a")
    assert heard == [["a"], ["a", "b", "c"], ["b", "c"]]


def test_a_listener_can_be_taken_off() -> None:
    """A removed listener is not called anymore; the others are."""
    registry = ToolRegistry()
    first: list[int] = []
    second: list[int] = []
    take_off = registry.on_change(lambda: first.append(1))
    registry.on_change(lambda: second.append(1))
    registry.register(Named("a"))
    take_off()
    registry.register(Named("b"))
    assert (len(first), len(second)) == (1, 2)


def test_a_listener_may_take_itself_off() -> None:
    """A listener that removes itself does not disturb the others."""
    registry = ToolRegistry()
    heard: list[str] = []

    def once() -> None:
        heard.append("once")
        take_off()

    take_off = registry.on_change(once)
    registry.on_change(lambda: heard.append("always"))
    registry.register(Named("a"))
    registry.register(Named("b"))
    assert heard == ["once", "always", "always"]


def test_a_listener_may_register_in_turn() -> None:
    """A listener can change the registry."""
    registry = ToolRegistry()
    registry.on_change(lambda: registry.register(Named("companion")))
    registry.register(Named("a"))
    assert names(registry) == ["a", "companion"]


class Follower:
    """A listener that copies the registry, as a running server does."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry
        self.seen = names(registry)
        registry.on_change(self)

    def __call__(self) -> None:
        self.seen = names(self.registry)


@pytest.mark.parametrize("change", [pytest.param("register", id="register"), pytest.param("unregister", id="remove")])
def test_a_listener_that_refuses_restores_the_former_content(change: str) -> None:
    """A change that a listener rejects is undone, also for the listeners before it."""
    registry = ToolRegistry([Named("a"), Named("b")])
    follower = Follower(registry)

    def refuse() -> None:
        raise ConfigurationError("not this one")

    registry.on_change(refuse)
    with pytest.raises(ConfigurationError, match="not this one"):
        registry.register(Named("c")) if change == "register" else registry.unregister("a")
    assert names(registry) == ["a", "b"]
    assert follower.seen == ["a", "b"]


def test_a_registry_works_on_after_a_refusal() -> None:
    """After a rejected change, the registry works as before."""
    registry = ToolRegistry()

    def refuse_bad() -> None:
        if "bad" in registry:
            raise ConfigurationError("bad")

    registry.on_change(refuse_bad)
    with pytest.raises(ConfigurationError):
        registry.register(Named("bad"))
    assert registry.register(Named("good"))
    assert names(registry) == ["good"]
