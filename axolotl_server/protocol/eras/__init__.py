"""The revisions of the protocol, as eras with a handshake or stateless."""
