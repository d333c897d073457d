"""Use cases: open a unit of work, call a stage, save, move the state."""
