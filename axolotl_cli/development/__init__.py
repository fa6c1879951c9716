"""The development server, `axolotl dev`."""
