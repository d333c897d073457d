"""Ways in: the HTTP gateway, the command line and the embedded stack."""
