"""Embedding adapters, and the one place that chooses among them."""
