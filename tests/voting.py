"""The rules of aggregation once more, on a list of votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

Decision = dict[int | None, Fraction]


def decide(votes: Sequence[int], rule: str, ties: str) -> Decision:
    """The rules once more, on a list of votes; None abstains."""
    counts = Counter(votes)
    most = max(counts.values())
    ahead = sorted(label for label, n in counts.items() if n == most)
    if rule == "majority":
        return {ahead[0]: Fraction(1)} if 2 * most > len(votes) else {None: Fraction(1)}
    if len(ahead) == 1 or ties == "ordered":
        return {ahead[0]: Fraction(1)}
    return {None: Fraction(1)} if ties == "abstain" else {label: Fraction(1, len(ahead)) for label in ahead}
