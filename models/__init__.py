"""SQLAlchemy tables without behaviour, and their migrations."""
