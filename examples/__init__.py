"""Sample documents, the script that makes them, and the demonstration that asks them five questions."""
