"""The generations of the protocol, behind one interface."""

__all__: list[str] = []
