"""From a question to terms, vectors and an honest outcome."""
