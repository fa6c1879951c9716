"""The measured servers, each started in a separate process."""
