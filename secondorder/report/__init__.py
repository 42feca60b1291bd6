"""One HTML file that shows a run: it opens without a network, and computes nothing that the estimates do not hold."""

from secondorder.report._html import report_html, sections_html

__all__ = ["report_html", "sections_html"]
