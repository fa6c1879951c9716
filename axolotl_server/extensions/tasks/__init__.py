"""Calls that outlive their request: the caller gets a task and comes back for the result."""
