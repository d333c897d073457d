"""The application: documents in, cited answers out. Knows no Celery, no SQL and no S3."""
