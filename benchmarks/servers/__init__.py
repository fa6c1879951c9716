"""The servers under measurement, each started in a process of its own."""
