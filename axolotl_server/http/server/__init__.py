"""The HTTP server process: uvicorn, limits of connections, and graceful shutdown."""
