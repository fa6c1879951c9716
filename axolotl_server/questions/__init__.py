"""Questions to the caller: in both eras, with sealed state between rounds."""
