"""HTTP sessions: in one process, or shared by several."""
