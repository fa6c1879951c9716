"""The layers around features: deadlines, limits, policies."""
