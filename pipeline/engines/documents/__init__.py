"""Readers of documents that have their own structure: text, Markdown, HTML, tables and Word; and of images' sizes.

Every reader is a pure function from bytes to a :class:`~pipeline.types.WindowText` and runs in a sandbox child.
"""
