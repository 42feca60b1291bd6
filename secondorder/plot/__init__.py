"""plot: see the package's own documentation."""
