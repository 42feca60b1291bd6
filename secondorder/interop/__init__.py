"""interop: see the package's own documentation."""
