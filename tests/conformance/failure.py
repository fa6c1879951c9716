"""The error for a suite that cannot be run."""


class CannotRun(Exception):
    """The suite cannot be run; the message explains why."""
