"""The layers around every tool."""
