"""Votes of a panel on the items of a cube, with what is known of the right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import attribute
from secondorder._schema import CODE_MISSING, ITEM
from secondorder.errors import CubeError, InputError, KernelError
from secondorder.studies._disagreement import Array, class_scores, label_scores
from secondorder.studies._parts import Codes, unit_counts
from secondorder.studies._ratings import Arranged, Invalid, arrange, check_cube

__all__ = ["Panel", "are_names", "gold_of", "known_scores", "make_panel"]


@dataclass(frozen=True)
class Panel:
    """Votes with named axes; an event is one vote of the whole panel (an item, under one order, one repeat).

    Attributes
    ----------
    laid : Arranged
        ``codes`` over groups, items, events, voters.
    counts : array, shape (groups, items, events, classes)
    scores : array, shape (classes,), or None
        Score of each class, NaN for ⊥; None where classes are names or no numbers, and none were given.
    right : int array, shape (items,), or None
        Code of the right class, -1 where there is none; None where the human answers are no classes.
    human : array, shape (items,), or None
        Human scores, NaN where there is none.
    default : int
        Position of the default voter.
    """

    laid: Arranged
    counts: Array
    scores: Array | None
    right: Codes | None
    human: Array | None
    default: int

    @property
    def voters(self) -> tuple[str, ...]:
        """Names of the voters."""
        return self.laid.inner[0]

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Events with a vote, (groups, items, events)."""
        return np.asarray(self.counts.sum(-1) > 0)


def make_panel(
    data: xr.Dataset | xr.DataArray,
    *,
    voters: str | Sequence[str],
    default: str | None,
    by: str | Sequence[str] | None,
    gold: str,
    scores: Mapping[str, float] | None,
    invalid: Invalid,
) -> Panel:
    """Lay a cube out as votes of a panel.

    Raises
    ------
    CubeError, InputError, KernelError
        When there is one voter, no such default, or the human answers do not fit.
    """
    cube = check_cube(data)
    laid = arrange(cube, inner=[voters], by=by, invalid=invalid)
    names = laid.inner[0]
    if len(names) < 2:
        raise CubeError(f"one voter: {names[0]!r}", place="voters", remedy="name a dimension with two levels or more")
    if default is not None and default not in names:
        raise InputError(f"there is no voter {default!r}", place="default", remedy=f"one of {', '.join(names)}")
    right, human = gold_of(cube, gold, laid.classes, scores)
    return Panel(
        laid=laid,
        counts=unit_counts(laid.codes.reshape(-1, *laid.codes.shape[2:]), len(laid.classes)).reshape(
            *laid.codes.shape[:3], len(laid.classes)
        ),
        scores=known_scores(cube, laid.classes, scores),
        right=right,
        human=human,
        default=0 if default is None else names.index(default),
    )


def are_names(cube: xr.Dataset) -> bool:
    """Whether a cube says that its classes are names, though they be written in digits."""
    return bool(attribute(cube, "kernel") == "nominal")


def known_scores(cube: xr.Dataset, classes: Sequence[str], scores: Mapping[str, float] | None) -> Array | None:
    """Score of each class; None where classes are names or no numbers, and no scores are given.

    Raises
    ------
    KernelError
        When scores are given, but not for every class that is no number.
    """
    if scores is None and are_names(cube):
        return None
    try:
        return class_scores(classes, scores)
    except KernelError:
        if scores is not None:
            raise
        return None


def gold_of(
    cube: xr.Dataset, name: str, classes: Sequence[str], scores: Mapping[str, float] | None
) -> tuple[Codes | None, Array | None]:
    """Right classes and human scores of the items, each None where the cube does not hold them.

    Raises
    ------
    CubeError
        When the variable is not one value for each item, or names a class that there is not.
    """
    if name not in cube.variables:
        return None, None
    variable = cube[name]
    if variable.dims != (ITEM,):
        raise CubeError(f"{name} has dimensions {variable.dims}", place="gold", remedy="give one value for each item")
    values = variable.to_numpy()
    if values.dtype.kind in "iuf":
        human = values.astype(float)
        texts = ["" if np.isnan(x) else str(int(x)) if float(x).is_integer() else str(x) for x in human.tolist()]
        whole = all(text in ("", *classes) for text in texts)
        return (_codes(texts, classes) if whole else None), human
    texts = ["" if value is None else str(value) for value in values.tolist()]
    strange = [text for text in texts if text and text not in classes]
    if strange and not _numeric(strange):
        raise CubeError(f"{strange[0]!r} is no class", place=name, remedy=f"classes: {', '.join(classes)}")
    return (None if strange else _codes(texts, classes)), _human(texts, scores)


def _codes(texts: Sequence[str], classes: Sequence[str]) -> Codes:
    position = {label: code for code, label in enumerate(classes)} | {"": CODE_MISSING}
    return np.array([position[text] for text in texts], dtype=np.int64)


def _human(texts: Sequence[str], scores: Mapping[str, float] | None) -> Array | None:
    try:
        return label_scores(texts, scores)
    except KernelError:
        return None


def _numeric(texts: Sequence[str]) -> bool:
    try:
        return all(np.isfinite(float(text)) for text in texts)
    except ValueError:
        return False
