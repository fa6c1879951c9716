"""Errors that stop the measurement of one contender, but not the run."""


class BenchmarkError(Exception):
    """A contender could not be measured."""


class NotInstalled(BenchmarkError):
    """The package of a contender is not installed."""
