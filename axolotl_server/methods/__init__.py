"""The methods of the protocol, by feature."""
