"""The methods of the protocol, by feature."""

__all__: list[str] = []
