"""The features of a server as callers see them: found by name or URI, listed in pages of ready bytes."""
