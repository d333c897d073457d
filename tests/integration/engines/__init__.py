"""The document engines in the real sandbox, with the real Tesseract."""
