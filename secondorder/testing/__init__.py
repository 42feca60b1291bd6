"""testing: see the package's own documentation."""
