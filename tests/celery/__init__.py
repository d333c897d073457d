"""Real workers as processes, real messages."""
