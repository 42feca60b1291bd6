"""report: see the package's own documentation."""
