"""studies: see the package's own documentation."""
