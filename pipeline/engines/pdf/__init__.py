"""Reading PDF with PDFium: pages, lines with font evidence, and whether a page needs OCR."""
