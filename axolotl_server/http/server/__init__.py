"""The HTTP server process: uvicorn, graceful shutdown, and workers that share a socket."""
