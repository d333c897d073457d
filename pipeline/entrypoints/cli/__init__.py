"""The command line: a client of the gateway, and what an operator runs on the spot."""
