"""A simulation study as a declaration: aims, data-generating mechanisms, estimands, methods, performance measures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from secondorder._canon import canonical_json, sha256_hex
from secondorder._design import Component
from secondorder.errors import SecondOrderError, SpecError
from secondorder.simulate._measures import MEASURES
from secondorder.simulate._mechanism import Mechanism
from secondorder.simulate._methods import Method, resolve_methods

__all__ = ["Point", "Published", "Study", "point_label", "with_levels"]


# Names of the results' dimensions and variables, and what xarray's selection takes for itself.
RESERVED_FACTORS = frozenset(
    {"estimator", "estimand", "sum", "truth", "plugin_bias", "failed", "sums", "measure", "value", "mcse"}
    | {"published", "source", "method", "tolerance", "drop", "indexers"}
    | {name for measure in MEASURES for name in (measure, f"{measure}_mcse")}
)

Level = str | int | float | bool
Point = dict[str, Level]


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that somebody printed, to stand beside the study's own.

    Parameters
    ----------
    point : mapping of factor to level
        The point of the grid that it belongs to.
    estimator, estimand, measure : str
    value : float
    source : str
        Where it stands.
    """

    point: Mapping[str, Level]
    estimator: str
    estimand: str
    measure: str
    value: float
    source: str


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simulation study in ADEMP terms.

    Parameters
    ----------
    name : str
        Short name: letters, digits, ``-`` and ``_``.
    aims : str
        What is to be learned.
    factors : mapping of factor to levels
        The grid: all combinations are run. Levels are text, whole numbers, floats or booleans.
    mechanism : callable
        From the factors as keyword arguments to a :class:`Mechanism`.
    replicates : int
        Data sets per point.
    seed : int
    methods : sequence of str or Method
        ``debiased``, ``plugin``, ``across-repeats``, ``panel``, or methods of one's own. Ratios of mean squared
        errors are taken to the first.
    estimands : sequence of str or Component
        Default: every standard component and every stated truth of the mechanism.
    measures : sequence of str
        Performance measures to show; default: all that exist for the methods.
    level : float
        Confidence level of intervals.
    published : sequence of Published
    figure : callable, optional
        From a :class:`StudyResult` to a matplotlib figure; default: bias of every method along the first factor.

    Examples
    --------
    >>> from secondorder.simulate import Mechanism, laws
    >>> def mechanism(R):
    ...     return Mechanism(laws.exchangeable([0.5, 0.5], {"prompt": 3}), repeats=R)
    >>> study = Study("null", "How large is the plug-in's bias?", {"R": (2, 4)}, mechanism, replicates=100, seed=1)
    >>> study.points()
    [{'R': 2}, {'R': 4}]
    """

    name: str
    aims: str
    factors: Mapping[str, Sequence[Level]]
    mechanism: Callable[..., Mechanism]
    replicates: int
    seed: int
    methods: Sequence[str | Method] = ("debiased", "plugin")
    estimands: Sequence[str | Component] = ()
    measures: Sequence[str] = ()
    level: float = 0.95
    published: Sequence[Published] = ()
    figure: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        place = f"study {self.name}"
        if not self.name or not all(c.isalnum() or c in "-_" for c in self.name):
            raise SpecError(f"name {self.name!r}", place="study", remedy="use letters, digits, '-' and '_'")
        for factor, levels in self.factors.items():
            if isinstance(levels, str) or not len(levels):
                raise SpecError(f"levels {levels!r}", place=f"{place}, factor {factor}", remedy="give a list of levels")
            if len(set(levels)) != len(levels) or len({type(level) for level in levels}) != 1:
                raise SpecError(
                    f"levels {list(levels)}",
                    place=f"{place}, factor {factor}",
                    remedy="give distinct levels of one type",
                )
            if factor in RESERVED_FACTORS or not factor.isidentifier():
                raise SpecError(
                    f"factor {factor!r}",
                    place=place,
                    remedy="name it as a Python argument, and not as a measure or a dimension of the results",
                )
        if not self.factors:
            raise SpecError("no factor", place=place, remedy="give at least one, even with a single level")
        if self.replicates < 1:
            raise SpecError(f"{self.replicates} replicates", place=place, remedy="give at least 1")
        if not 0 < self.level < 1:
            raise SpecError(f"level {self.level:g}", place=place, remedy="give a probability")
        unknown = [measure for measure in self.measures if measure not in MEASURES]
        if unknown:
            raise SpecError(f"measure {unknown[0]!r}", place=place, remedy=f"say {', '.join(MEASURES)}")
        resolve_methods(self.methods)

    def __hash__(self) -> int:
        return hash(self.digest())

    def points(self) -> list[Point]:
        """Every combination of factor levels, the last factor fastest."""
        return [dict(zip(self.factors, levels, strict=True)) for levels in product(*self.factors.values())]

    def mechanism_at(self, point: Point) -> Mechanism:
        """The mechanism at a point.

        Raises
        ------
        SpecError
            When the study's function fails, or answers something else.
        """
        try:
            mechanism = self.mechanism(**point)
        except SecondOrderError:
            raise
        except (Exception, SystemExit) as error:
            raise SpecError(
                f"mechanism({point_label(point)}) raises {type(error).__name__}: {error}",
                place=f"study {self.name}",
                remedy="mend the function; it gets the factors as keyword arguments",
            ) from error
        if not isinstance(mechanism, Mechanism):
            raise SpecError(
                f"mechanism({point_label(point)}) is a {type(mechanism).__name__}",
                place=f"study {self.name}",
                remedy="return a secondorder.simulate.Mechanism",
            )
        return mechanism

    def digest(self, mechanisms: Sequence[Mechanism] | None = None) -> str:
        """SHA-256 of what is simulated: laws, designs, methods, seed; neither of the number of replicates nor of text.

        The mechanisms themselves enter, not the code that made them; methods of one's own enter by their source.
        `mechanisms` are those of all points, where they are known already.
        """
        made = [self.mechanism_at(point) for point in self.points()] if mechanisms is None else mechanisms
        labels = [point_label(point) for point in self.points()]
        described = {
            "name": self.name,
            "seed": self.seed,
            "level": self.level,
            "points": [[label, mechanism.digest()] for label, mechanism in zip(labels, made, strict=True)],
            "methods": [_method_text(method) for method in self.methods],
            "estimands": [e if isinstance(e, str) else [e.name, repr(e.terms)] for e in self.estimands],
        }
        return sha256_hex(canonical_json(described))


def point_label(point: Mapping[str, Level]) -> str:
    """``K=5 R=2``: the name of a point, and of its random numbers."""
    return " ".join(f"{factor}={level}" for factor, level in point.items())


def with_levels(study: Study, chosen: Mapping[str, Sequence[str]]) -> Study:
    """The study with other levels of some factors, given as text; the points they share keep their digits.

    Raises
    ------
    SpecError
        For an unknown factor, or a text that is no level of the factor's type.
    """
    factors = dict(study.factors)
    for factor, texts in chosen.items():
        if factor not in factors:
            raise SpecError(
                f"factor {factor!r}", place=f"study {study.name}", remedy=f"factors: {', '.join(study.factors)}"
            )
        kind = type(factors[factor][0])
        factors[factor] = tuple(_parsed(text, kind, study.name, factor) for text in texts)
    return msgspec.structs.replace(study, factors=factors)


def _parsed(text: str, kind: type, study: str, factor: str) -> Level:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is int:
            return int(text)
        return float(text) if kind is float else text
    except (ValueError, KeyError):
        raise SpecError(
            f"level {text!r}", place=f"study {study}, factor {factor}", remedy=f"its levels are {kind.__name__}s"
        ) from None


def _method_text(method: str | Method) -> Any:
    if isinstance(method, str):
        return method
    try:
        source = inspect.getsource(method.function)
    except (OSError, TypeError):
        # No source (an interactive session, a callable object): its name is all there is.
        source = getattr(method.function, "__qualname__", type(method.function).__qualname__)
    return [method.name, method.calls, source]
