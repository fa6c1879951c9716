"""What keeps the suite from being run at all."""


class CannotRun(Exception):
    """The suite cannot be run; the message says what is missing."""
