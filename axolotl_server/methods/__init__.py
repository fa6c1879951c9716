"""The methods of the protocol that run no feature, and those of extensions."""
