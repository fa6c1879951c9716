"""One call: compiled features, the method that runs them, and the questions that they ask."""
