"""A tool made from a function: schema from the signature, descriptions from the docstring."""

from axolotl_core import tool


@tool
async def reverse(text: str) -> str:
    """反转输入文本

    Args:
        text: 要反转的内容
    """
    return text[::-1]
