"""The running calls per principal, counted only while many calls run."""

from collections import Counter
from collections.abc import Iterable

from axolotl_core.layers import ToolCall
from axolotl_server.messages.fair_share import Share
from axolotl_server.messages.request import Request


class CallShares:
    """Counts the calls of each principal from the moment when one principal could have reached the limit.

    Below that, a call costs nothing. Counting stops when half as many calls run, so that it does not begin anew with
    every call around the limit.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """How many calls of one principal may run at once."""
        self.counting = False
        self._share_of: dict[ToolCall, Share] = {}
        self._counts: Counter[Share] = Counter()

    def admit(self, call: ToolCall, running: Iterable[ToolCall]) -> bool:
        """Count a call that is about to run besides others; return False if its principal runs too many already."""
        if not self.counting:
            self.counting = True
            for one in running:
                self._add(one)
        return self._add(call)

    def _add(self, call: ToolCall) -> bool:
        request = call.caller
        assert isinstance(request, Request)
        share = request.exchange.share
        if share is None:
            return True
        if self._counts[share] >= self.limit:
            return False
        self._share_of[call] = share
        self._counts[share] += 1
        return True

    def remove(self, call: ToolCall, running: int) -> None:
        """Stop counting a call that has ended; stop altogether if few calls are running."""
        share = self._share_of.pop(call, None)
        if share is not None:
            self._counts[share] -= 1
            if not self._counts[share]:
                del self._counts[share]
        if running < self.limit / 2:
            self.counting = False
            self._share_of.clear()
            self._counts.clear()
