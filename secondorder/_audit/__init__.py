"""From an audit specification to a report."""
