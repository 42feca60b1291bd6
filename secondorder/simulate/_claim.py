"""A claim as a declaration: an exact check, or a study and what it must show, with the rate of false alarms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from secondorder.errors import SpecError
from secondorder.simulate._measures import MEASURES
from secondorder.simulate._study import Level, Study

__all__ = ["Claim", "Expect", "Finding"]

Number = float | str


class Finding(msgspec.Struct, frozen=True):
    """One number that was checked.

    Attributes
    ----------
    what : str
    found, expected : float or str
        Exact numbers as text.
    limit : float
        Largest difference that passes; 0 demands equality.
    passed : bool
    """

    what: str
    found: Number
    expected: Number
    limit: float
    passed: bool

    @classmethod
    def equal(cls, what: str, found: Any, expected: Any) -> Finding:
        """Exact equality, of fractions as a rule.

        Examples
        --------
        >>> from fractions import Fraction
        >>> Finding.equal("one half", Fraction(2, 4), Fraction(1, 2)).passed
        True
        """
        return cls(what, str(found), str(expected), 0.0, bool(found == expected))

    @classmethod
    def close(cls, what: str, found: float, expected: float, limit: float) -> Finding:
        """A difference of at most `limit`; NaN never passes."""
        difference = abs(float(found) - float(expected))
        return cls(what, float(found), float(expected), float(limit), bool(difference <= limit))

    @classmethod
    def at_least(cls, what: str, found: float, bound: float) -> Finding:
        """A number that must not fall below a bound; NaN never passes."""
        return cls(what, float(found), f">= {bound:g}", 0.0, bool(float(found) >= bound))

    @classmethod
    def at_most(cls, what: str, found: float, bound: float) -> Finding:
        """A number that must not exceed a bound; NaN never passes."""
        return cls(what, float(found), f"<= {bound:g}", 0.0, bool(float(found) <= bound))


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a study must show for a claim to hold, at every point and estimand that it names.

    Parameters
    ----------
    measure : str
        A performance measure, such as ``bias`` or ``coverage``.
    estimator : str
    equals : float, "plugin_bias" or callable, optional
        The value; ``plugin_bias``: the plug-in's closed form; a callable gets the point and the estimand.
    at_least, at_most : float, optional
        Bounds, in the place of `equals`.
    tolerance : float
        How far off the true value may be, for instance by the rounding of a printed one.
    estimands : sequence of str
        Default: all for which the measure is defined.
    where : mapping of factor to level
        Points; default: all.
    """

    measure: str
    estimator: str
    equals: float | str | Callable[[Mapping[str, Level], str], float] | None = None
    at_least: float | None = None
    at_most: float | None = None
    tolerance: float = 0.0
    estimands: Sequence[str] = ()
    where: Mapping[str, Level] = {}

    def __post_init__(self) -> None:
        place = f"expect {self.measure}"
        if self.measure not in MEASURES:
            raise SpecError(f"measure {self.measure!r}", place="expect", remedy=f"say {', '.join(MEASURES)}")
        if (self.equals is None) == (self.at_least is None and self.at_most is None):
            raise SpecError("neither or both of a value and a bound", place=place, remedy="say equals, or bounds")
        if isinstance(self.equals, str) and self.equals != "plugin_bias":
            raise SpecError(f"equals {self.equals!r}", place=place, remedy="give a number, or 'plugin_bias'")

    def accepted(self, point: Mapping[str, Level], estimand: str, plugin_bias: float) -> tuple[float, float]:
        """The interval of true values with which the claim holds."""
        if self.equals is None:
            low = -math.inf if self.at_least is None else self.at_least
            high = math.inf if self.at_most is None else self.at_most
        elif isinstance(self.equals, str):
            low = high = plugin_bias
        elif callable(self.equals):
            low = high = float(self.equals(point, estimand))
        else:
            low = high = float(self.equals)
        return low - self.tolerance, high + self.tolerance


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that this package says is true, with the evidence that would show it false.

    Parameters
    ----------
    name : str
        Short name: letters, digits, ``-`` and ``_``.
    statement : str
        One sentence.
    check : callable, optional
        An exact check: from `quick` (bool) to findings. It never fails without cause.
    detectable : str
        For an exact check: what difference it would see, in words.
    study : Study, optional
        A random check: the study that is run.
    expects : sequence of Expect
    false_alarm : float
        For a random check: the largest probability that it fails although the claim is true.
    power : float
        Probability with which a discrepancy of the stated detectable size is found.
    quick_replicates : int
        Replicates of the study under ``--quick``.

    Examples
    --------
    >>> claim = Claim("sum", "One and one make two.", lambda quick: [Finding.equal("1 + 1", 1 + 1, 2)], "any")
    >>> claim.is_exact
    True
    """

    name: str
    statement: str
    check: Callable[[bool], Iterable[Finding]] | None = None
    detectable: str = ""
    study: Study | None = None
    expects: Sequence[Expect] = ()
    false_alarm: float = 1e-6
    power: float = 0.99
    quick_replicates: int = 0

    def __post_init__(self) -> None:
        place = f"claim {self.name}"
        if not self.name or not all(c.isalnum() or c in "-_" for c in self.name):
            raise SpecError(f"name {self.name!r}", place="claim", remedy="use letters, digits, '-' and '_'")
        if (self.check is None) == (self.study is None):
            raise SpecError("neither or both of check and study", place=place, remedy="give exactly one")
        if self.check is not None and not self.detectable:
            raise SpecError("it does not say what it would see", place=place, remedy="add detectable='...'")
        if self.study is not None and (not self.expects or self.quick_replicates < 1):
            raise SpecError("a study needs expects and quick_replicates", place=place, remedy="add them")
        if not 0 < self.false_alarm < 0.5 or not 0.5 < self.power < 1:
            raise SpecError(f"false alarm {self.false_alarm:g}, power {self.power:g}", place=place)

    @property
    def is_exact(self) -> bool:
        """Whether it cannot fail without cause."""
        return self.check is not None
