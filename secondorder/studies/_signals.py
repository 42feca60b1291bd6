"""What a gate looks at: labels and numbers of a case, encoded as one row of numbers in a way that is plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.errors import InputError
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import in_order

__all__ = ["Signal", "encode", "fit_signals", "signal_names"]

Values = Mapping[str, NDArray[Any]]


class Signal(NamedTuple):
    """How one signal becomes numbers.

    Attributes
    ----------
    name : str
    levels : tuple of str, or None
        Of labels: one column for each, 1 where it is that label; a label that was never seen is 0 in all of them.
        None for a number.
    mean, scale : float
        A number is centred and scaled by these.
    """

    name: str
    levels: tuple[str, ...] | None
    mean: float = 0.0
    scale: float = 1.0


def fit_signals(values: Values) -> tuple[Signal, ...]:
    """Encoding of signals: the levels of labels; mean and standard deviation of numbers.

    Raises
    ------
    InputError
        When a number is missing.

    Examples
    --------
    >>> task, words = fit_signals({"task": np.array(["b", "a"]), "words": np.array([10.0, 30.0])})
    >>> task.levels, words.mean, words.scale
    (('a', 'b'), 20.0, 10.0)
    """
    found = []
    for name, column in values.items():
        if column.dtype.kind not in "iufb":
            found.append(Signal(name, in_order({str(value) for value in column.tolist()})))
            continue
        numbers = column.astype(float)
        if not np.isfinite(numbers).all():
            raise InputError(
                f"signal {name!r} has {int((~np.isfinite(numbers)).sum())} cases without a number",
                place="signals",
                remedy="fill them, or leave the signal out",
            )
        spread = float(numbers.std())
        found.append(Signal(name, None, float(numbers.mean()), spread if spread > 0 else 1.0))
    return tuple(found)


def encode(signals: Sequence[Signal], values: Values) -> Array:
    """Signals as rows of numbers, (cases, columns).

    Raises
    ------
    InputError
        When a signal is not there, or a number is none.
    """
    blocks = []
    for signal in signals:
        if signal.name not in values:
            raise InputError(f"signal {signal.name!r} is not there", place="gate", remedy=f"given: {', '.join(values)}")
        column = values[signal.name]
        if signal.levels is not None:
            text = np.array([str(value) for value in column.tolist()], dtype=object)
            blocks.append((text[:, None] == np.array(signal.levels, dtype=object)).astype(float))
            continue
        try:
            numbers = column.astype(float)
        except ValueError:
            numbers = np.full(len(column), np.nan)
        if not np.isfinite(numbers).all():
            wrong = column[~np.isfinite(numbers)][0]
            raise InputError(f"{wrong!r} is no number", place=f"signal {signal.name}", remedy="give a finite number")
        blocks.append(((numbers - signal.mean) / signal.scale)[:, None])
    return np.concatenate(blocks, axis=1)


def signal_names(signals: Sequence[Signal]) -> list[str]:
    """Names of the columns that :func:`encode` gives."""
    return [
        name
        for signal in signals
        for name in ([signal.name] if signal.levels is None else [f"{signal.name}={level}" for level in signal.levels])
    ]
