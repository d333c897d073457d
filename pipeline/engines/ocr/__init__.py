"""Text recognition by Tesseract: ``tesseract`` is the adapter, ``jobs`` what runs in the sandbox child."""
