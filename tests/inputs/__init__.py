"""Documents that tests build for themselves."""
