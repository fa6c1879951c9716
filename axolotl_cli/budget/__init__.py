"""The budget: what the list of tools costs a model."""
