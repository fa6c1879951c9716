"""Running a feature for a request: bindings, and the methods that call them."""
