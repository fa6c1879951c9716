"""The audit log: records of calls, their sinks, and a hash chain that shows changes."""
