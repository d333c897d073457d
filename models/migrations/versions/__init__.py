"""One migration a file, numbered."""
