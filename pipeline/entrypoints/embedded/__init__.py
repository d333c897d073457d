"""The embedded stack: real Postgres, Redis and S3 servers, and Docmill's own processes, under one data directory."""
