"""That nobody can tell now whose a token is."""

__all__ = ["Unavailable"]


class Unavailable(Exception):
    """What a token is judged by cannot be had; the text is for the log and holds no secret."""
