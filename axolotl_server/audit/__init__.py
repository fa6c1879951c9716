"""Records of calls: what they say, where they are kept, and how one knows that nobody changed them."""
