"""The generations of the protocol, behind one interface."""
