"""From an audit specification to a report: plan, acquire, cube, decompose, report.

The one floor that knows both acquisition and statistics. Every stage reads the artifact before it and writes one; a
stage whose input has not changed does nothing.
"""
