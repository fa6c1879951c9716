"""Questions that code can ask its caller."""
