"""The commands a user types, from outside."""
