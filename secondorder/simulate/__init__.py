"""simulate: see the package's own documentation."""
