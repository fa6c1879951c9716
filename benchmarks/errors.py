"""What can go wrong with one contender without ending the run."""


class BenchmarkError(Exception):
    """Report that a contender could not be measured; the run goes on without it."""


class NotInstalled(BenchmarkError):
    """Report that a contender's package is missing."""
