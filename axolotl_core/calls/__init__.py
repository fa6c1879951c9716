"""A call as its code sees it."""
