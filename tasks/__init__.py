"""Celery only: the app, the base task, one thin task per stage, the sweeps."""
