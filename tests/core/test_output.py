"""Detection of structured output types."""

from collections.abc import Sequence
from typing import Any, List, Literal, Optional, Union  # noqa: UP035

import pytest

from axolotl_core.content import ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResult, is_structured
from tests.support.core.sample_tools import Sum


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(str, id="text"),
        pytest.param(None, id="none"),
        pytest.param(type(None), id="none-type"),
        pytest.param(Any, id="any"),
        pytest.param(object, id="object"),
        pytest.param(ToolResult, id="result"),
        pytest.param(TextContent, id="block"),
        pytest.param(ContentBlock, id="any-block"),
        pytest.param(list[TextContent], id="blocks"),
        pytest.param(List[TextContent], id="old-list-of-blocks"),  # noqa: UP006
        pytest.param(list[ContentBlock], id="list-of-any-block"),
        pytest.param(list[TextContent | ImageContent], id="list-of-two-blocks"),
        pytest.param(tuple[TextContent, ...], id="tuple-of-blocks"),
        pytest.param(tuple[TextContent, EmbeddedResource], id="fixed-tuple-of-blocks"),
        pytest.param(Sequence[ContentBlock], id="sequence-of-blocks"),
        pytest.param(str | None, id="text-or-none"),
        pytest.param(Optional[str], id="optional-text"),  # noqa: UP045
        pytest.param(Union[str, TextContent], id="text-or-block"),  # noqa: UP007
        pytest.param(str | list[TextContent], id="text-or-blocks"),
        pytest.param(list[ContentBlock] | None, id="blocks-or-none"),
        pytest.param(ToolResult | None, id="result-or-none"),
    ],
)
def test_text_nothing_and_blocks_are_not_structured(declared: Any) -> None:
    """Text, None and content blocks are not structured."""
    assert not is_structured(declared)


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(Sum, id="model"),
        pytest.param(int, id="number"),
        pytest.param(bool, id="boolean"),
        pytest.param(dict, id="bare-dict"),
        pytest.param(dict[str, int], id="dict"),
        pytest.param(list, id="bare-list"),
        pytest.param(list[str], id="list-of-text"),
        pytest.param(list[Any], id="list-of-anything"),
        pytest.param(list[Sum], id="list-of-models"),
        pytest.param(tuple[int, str], id="tuple"),
        pytest.param(Sequence[int], id="sequence"),
        pytest.param(Literal["a"], id="literal"),
        pytest.param(Sum | None, id="model-or-none"),
        pytest.param(Optional[int], id="optional-number"),  # noqa: UP045
        pytest.param(str | int, id="text-or-number"),
        pytest.param(list[TextContent] | Sum, id="blocks-or-model"),
    ],
)
def test_any_other_json_type_is_structured(declared: Any) -> None:
    """All other types become structured content."""
    assert is_structured(declared)
