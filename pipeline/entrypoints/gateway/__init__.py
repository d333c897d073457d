"""The HTTP gateway: files in, sources watched and read, questions asked."""
