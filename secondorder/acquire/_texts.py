"""What stands in a judge's answer: decoration, marks, labels and numbers. No rule here guesses.

Every pattern is linear in the length of the text, since answers are untrusted and may be a megabyte on one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

__all__ = ["Labels", "as_number", "bare", "last_line", "mark_spans", "marks_of", "numbers_in", "without_lead"]

SPACE = " \t\n\r\f\v\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200E)))
"""ASCII and Unicode space, with the zero-width ones and the byte-order mark."""

WRAPPING = "*_`\"'“”‘’«»()[]{}\u2581"
CLOSING = ".,:;!"
DECORATION = WRAPPING + CLOSING
"""Stripped around an answer: emphasis, quotation marks, brackets, closing punctuation, the tokenisers' word mark.

Not stripped: signs and comparisons (``+ - < > ~ ? #``), which change what is said.
"""

_MARK = re.compile(r"\[\[([^\[\]\n]{1,64})\]\]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_LEAD = re.compile(
    r"(?:(?:my|the|final|best|better|overall)[ \t]{1,4}){0,3}"
    r"(?:answer|assistant|candidate|choice|decision|grade|judge?ment|label|option|output|rating|response|score|verdict|winner)"
    r"(?:[ \t*_]{0,4}(?::|=|\bis\b)|[ \t])[ \t*_]{0,4}",
    re.IGNORECASE,
)


def bare(text: str) -> str:
    r"""The text without space and decoration around it.

    Examples
    --------
    >>> bare(" **[A]**.\n"), bare("-3")
    ('A', '-3')
    """
    return text.strip(SPACE + DECORATION)


def without_lead(text: str) -> str:
    """The text behind a lead-in such as ``Answer:``, ``My final verdict is`` or ``Response``; else the text itself.

    Examples
    --------
    >>> without_lead("**Answer:** B"), without_lead("The worse answer: B")
    ('B', 'The worse answer: B')
    """
    start = text.lstrip(SPACE + DECORATION)
    found = _LEAD.match(start)
    return start[found.end() :] if found else text


def marks_of(text: str) -> list[str]:
    """What stands between double square brackets, in order.

    Examples
    --------
    >>> marks_of("[[B]] is better than **[[A]]**")
    ['B', 'A']
    """
    return _MARK.findall(text)


def mark_spans(text: str) -> list[tuple[int, int]]:
    """Where what stands between double square brackets begins and ends, in order.

    Examples
    --------
    >>> mark_spans("[[B]], **[[A]]**")
    [(2, 3), (11, 12)]
    """
    return [found.span(1) for found in _MARK.finditer(text)]


def as_number(text: str) -> Decimal | None:
    """The plain decimal number that a text is, without space and decoration; None for any other text.

    No exponents, no separators; a leading point is not decoration, so ``.5`` is refused rather than read as 5.

    Examples
    --------
    >>> as_number("**7**."), as_number("−2.50"), as_number("1e3"), as_number("7 of 10"), as_number(".5")
    (Decimal('7'), Decimal('-2.50'), None, None, None)
    """
    plain = text.rstrip(SPACE + DECORATION).lstrip(SPACE + WRAPPING).replace("\u2212", "-")
    return Decimal(plain) if _NUMBER.fullmatch(plain) else None


def numbers_in(text: str) -> set[Decimal]:
    """All distinct numbers in running text (only their count is used: to tell *ambiguous* from *unparsed*)."""
    return {Decimal(found) for found in _NUMBER.findall(text.replace("\u2212", "-"))}


def last_line(text: str) -> str:
    """The last line that holds more than space (lines end at LF or CR only)."""
    return re.split(r"[\r\n]", text.rstrip(SPACE))[-1]


class Labels:
    """What the judge may say, and what each saying means.

    Lookup is by the whole bare text: exact, then without regard to case where that is unique.

    Parameters
    ----------
    meanings : mapping of str to str
        From label to meaning (``first``, ``second`` or a class).
    """

    def __init__(self, meanings: Mapping[str, str]) -> None:
        self._exact = {bare(label): meaning for label, meaning in meanings.items()}
        folded: dict[str, set[str]] = {}
        for label, meaning in self._exact.items():
            folded.setdefault(label.casefold(), set()).add(meaning)
        self._folded = {label: min(found) for label, found in folded.items() if len(found) == 1}
        words = sorted(map(re.escape, self._exact), key=len, reverse=True)
        self._words = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)")

    def meaning(self, text: str) -> str | None:
        """The meaning of a text that is nothing but a label, else None."""
        word = bare(text)
        return self._exact.get(word, self._folded.get(word.casefold()))

    def meanings_in(self, text: str) -> set[str]:
        """Meanings of all labels that stand as whole words in running text (never a verdict: see `numbers_in`)."""
        return {self._exact[found] for found in set(self._words.findall(text))}

    def agreed(self, texts: Iterable[str]) -> tuple[str | None, str]:
        """The one meaning of several texts, or None and why: ``ambiguous`` when they differ, ``unparsed`` otherwise.

        A text that is no label differs from one that is.
        """
        found = {self.meaning(text) for text in texts}
        if len(found) > 1:
            return None, "ambiguous"
        meaning = found.pop() if found else None
        return meaning, "" if meaning is not None else "unparsed"
