"""The commands, one module each; anything heavy is imported when a command runs."""
