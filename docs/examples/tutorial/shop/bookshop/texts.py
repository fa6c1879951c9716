from axolotl_core import prompt, resource


# region prompt
@prompt
def recommend(topic: str) -> str:
    """Recommend a book.

    Args:
        topic: What the book should be about.
    """
    return f"Search our stock for books about {topic} and recommend one, in three sentences."


# endregion prompt


# region resource
@resource("bookshop://terms", mime_type="text/markdown")
def terms() -> str:
    """The terms of delivery."""
    return "Books are sent within two days. Returns are free for two weeks."


# endregion resource
