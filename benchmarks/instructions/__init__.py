"""Instructions per call and at the start, counted by valgrind: the same on a busy machine as on a quiet one."""
