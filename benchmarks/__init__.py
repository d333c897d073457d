"""What the README's figures come from; make bench prints them all."""
