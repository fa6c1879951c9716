"""A call log that a test can read."""

from axolotl_examples.registration.call_log import ICallLog, LoggedCall


class ListCallLog(ICallLog):
    def __init__(self) -> None:
        self.calls: list[LoggedCall] = []

    def write(self, call: LoggedCall) -> None:
        self.calls.append(call)
