"""Writers of documents: Markdown from the block model."""
