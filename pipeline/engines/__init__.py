"""Compute adapters: parsers, OCR and embedding models, each behind a port."""
