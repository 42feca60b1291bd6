"""Text that others wrote, as a terminal and a page can show it: no character acts, every character is seen."""

from __future__ import annotations

import re

__all__ = ["visible"]

_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Escape what a terminal would obey or hide: control characters, overrides of direction, halves of characters.

    Labels, file names and answers of servers are untrusted. A label that holds an escape sequence could clear the
    screen, name the window or write over the line above.

    Parameters
    ----------
    text : str
    keep : str
        Characters that stay: the line ends of a text of several lines.

    Examples
    --------
    >>> visible("q\x1b[2J1"), visible("two\nlines\n", keep="\n"), visible("⊥ café")
    ('q\\x1b[2J1', 'two\nlines\n', '⊥ café')
    """

    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        return found[0] if found[0] in keep else f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return _ACTING.sub(escaped, text)
