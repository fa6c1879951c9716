"""The version of all packages, which the build and the command line read from here."""

__version__ = "0.1.0"
