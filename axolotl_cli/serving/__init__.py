"""Running a server: over stdio, over HTTP, and with several workers."""
