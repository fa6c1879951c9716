"""A page on which one sees what a server offers and does, and calls it: for the machine that it runs on."""
