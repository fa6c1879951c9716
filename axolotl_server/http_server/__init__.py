"""The HTTP server process: uvicorn, graceful shutdown, and workers that share a socket."""

from axolotl_server.http_server.uvicorn_imports import import_uvicorn

import_uvicorn()
