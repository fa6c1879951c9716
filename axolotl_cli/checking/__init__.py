"""The checks of `axolotl check`."""
