"""Commands about a project: its checks, its entry in clients, its contract and its size."""
