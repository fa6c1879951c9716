"""Access control: rules, the guard in front of methods, decisions."""
