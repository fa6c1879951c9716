"""Messages and the connections that they arrive on."""
