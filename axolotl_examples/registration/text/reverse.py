"""A tool from a function: its schema comes from the signature, its descriptions from the docstring."""

from axolotl_core import tool


@tool
async def reverse(text: str) -> str:
    """反转输入文本

    Args:
        text: 要反转的内容
    """
    return text[::-1]
