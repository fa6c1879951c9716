"""Rates and quotas: what an operator says about them, and what is made of it."""

__all__: list[str] = []
