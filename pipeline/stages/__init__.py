"""One verb a file, pure: (input, context) -> output."""
