"""What an operator sees of a running server: structured logs, traces and metrics, each only where it is switched on."""
