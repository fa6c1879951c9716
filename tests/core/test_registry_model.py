"""ToolRegistry behaves like a dict with casefolded keys."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from axolotl_core import ToolRegistry
from axolotl_core.registry import AnyTool
from tests.support.core.sample_tools import Named

WORDS = ["a", "b", "echo", "getUser", "straße", "strasse", "ﬁle", "file", "İd", "id", "ǅ", "σς"]
spellings = st.sampled_from(WORDS).flatmap(
    lambda word: st.sampled_from([word, word.upper(), word.lower(), word.title(), word.swapcase()])
)


class RegistryMachine(RuleBasedStateMachine):
    """Plays with a registry and a dict at once."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = ToolRegistry()
        self.model: dict[str, AnyTool] = {}
        self.heard = 0
        self.changes = 0
        self.registry.on_change(self._hear)

    def _hear(self) -> None:
        self.heard += 1

    def _expect_added(self, tools: list[AnyTool]) -> int:
        before = len(self.model)
        for tool in tools:
            self.model.setdefault(tool.name.casefold(), tool)
        added = len(self.model) - before
        self.changes += added > 0
        return added

    @rule(name=spellings)
    def register(self, name: str) -> None:
        tool = Named(name)
        assert self.registry.register(tool) is (self._expect_added([tool]) == 1)

    @rule(several=st.lists(spellings, max_size=4))
    def register_range(self, several: list[str]) -> None:
        tools: list[AnyTool] = [Named(name) for name in several]
        assert self.registry.register_range(tools) == self._expect_added(tools)

    @rule(name=spellings)
    def unregister(self, name: str) -> None:
        removed = self.model.pop(name.casefold(), None)
        self.changes += removed is not None
        assert self.registry.unregister(name) is (removed is not None)

    @rule(name=spellings)
    def look_up(self, name: str) -> None:
        expected = self.model.get(name.casefold())
        assert self.registry.try_get(name) is expected
        assert (name in self.registry) is (expected is not None)

    @invariant()
    def same_content_in_the_same_order(self) -> None:
        assert self.registry.get_all() == tuple(self.model.values())
        assert len(self.registry) == len(self.model)

    @invariant()
    def every_change_was_heard_once(self) -> None:
        assert self.heard == self.changes


TestRegistry = RegistryMachine.TestCase
TestRegistry.__doc__ = "Any sequence of changes leaves registry and dict with the same tools in the same order."
