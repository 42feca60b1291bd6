"""One HTML file that shows a run: it opens without a network, and computes nothing that the estimates do not hold."""

from secondorder.report._html import report_html, sections_html
from secondorder.report._studies import section_text

__all__ = ["report_html", "section_text", "sections_html"]
