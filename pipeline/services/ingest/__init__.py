"""One handler a stage: read what it works on, call the pure stage, say what to save."""
