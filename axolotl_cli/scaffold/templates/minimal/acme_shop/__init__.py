"""Tools served over the Model Context Protocol."""
