"""In-memory adapters of the ports services use; only tests import them."""
