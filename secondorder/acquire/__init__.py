"""acquire: see the package's own documentation."""
