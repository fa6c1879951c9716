"""Fixtures of the fault tests."""

from tests.support.forked_processes import share_forks

share_forks()
