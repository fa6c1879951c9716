"""Who sends a request over HTTP: bearer tokens verified, challenges for those without one, and where to get one."""
