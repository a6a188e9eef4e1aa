"""Empty in wids, and here: programs may import it."""
