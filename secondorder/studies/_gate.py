"""A gate: from the first verdict and what is known of an item to the decision whether the other voters are asked."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondorder._labels._results import printed
from secondorder._schema import GATE_SCHEMA, check_schema
from secondorder._version import __version__
from secondorder.errors import CorruptFileError, InputError, StorageError
from secondorder.studies._disagreement import Array
from secondorder.studies._ratings import Invalid
from secondorder.studies._signals import Signal, encode, signal_names
from secondorder.studies._stopping import Stop

__all__ = ["Gate", "gate_from", "open_gate"]


@printed
@dataclass(frozen=True)
class Gate:
    """A trained gate.

    Attributes
    ----------
    voters : str
        Dimension of the voters.
    first : str
        The voter that is always asked.
    others : tuple of str
        The voters behind the gate, in the order in which they are asked.
    classes : tuple of str
        Verdicts that the gate knows; ⊥ last where it occurs.
    invalid : {"class", "missing"}
        Whether ⊥ is a vote.
    stop : {"decided", "majority"} or None
        When an open gate stops asking; None: everybody is asked.
    signals : tuple of Signal
    threshold : float
        Probability of needing aggregation from which on the gate opens.
    coefficients : tuple of float, or None
        Of a logistic gate: one for each column of the signals, then the intercept.
    classifier : object or None
        Of any other: what has ``predict_proba``; its second column is the probability of needing aggregation.
    training : mapping
        What it was trained on, and how good it was.
    """

    voters: str
    first: str
    others: tuple[str, ...]
    classes: tuple[str, ...]
    invalid: Invalid
    stop: Stop | None
    signals: tuple[Signal, ...]
    threshold: float
    coefficients: tuple[float, ...] | None
    classifier: Any
    training: Mapping[str, Any]

    def probability(self, values: Mapping[str, NDArray[Any]]) -> Array:
        """Probability that a case needs aggregation, for columns of signals (``verdict`` holds class labels)."""
        rows = encode(self.signals, values)
        if self.coefficients is None:
            return np.asarray(self.classifier.predict_proba(rows)[:, 1], dtype=float)
        *slopes, intercept = self.coefficients
        return np.asarray((1 + np.tanh((rows @ np.array(slopes) + intercept) / 2)) / 2)

    def opens(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Whether the other voters are asked."""
        return self.probability(values) >= self.threshold

    def __str__(self) -> str:
        lines = [
            f"Gate behind {self.voters} {self.first}: {', '.join(self.others)}",
            f"opens from probability {self.threshold:.4f}; stops when {self.stop or 'everybody was asked'}",
        ]
        if self.coefficients is not None:
            names = [*signal_names(self.signals), "(intercept)"]
            width = max(map(len, names))
            lines += [f"  {name:<{width}}  {value: .4f}" for name, value in zip(names, self.coefficients, strict=True)]
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the gate as JSON: numbers and names, which can hold no code and which any version can read.

        Only logistic gates can be written. Pickled classifiers run whatever code their file holds when they are opened,
        and break with the next version of their library; train such a gate where it is used.

        Raises
        ------
        InputError
            When the gate is no logistic one.
        StorageError
            When the disk refuses.
        """
        if self.coefficients is None:
            raise InputError(
                f"a gate of {type(self.classifier).__name__} cannot be written",
                place=str(path),
                remedy="use the default classifier, or train this one where it is used",
            )
        data = {
            "schema": GATE_SCHEMA,
            "version": __version__,
            "voters": self.voters,
            "first": self.first,
            "others": list(self.others),
            "classes": list(self.classes),
            "invalid": self.invalid,
            "stop": self.stop,
            "threshold": self.threshold,
            "signals": [
                {"name": one.name, "mean": one.mean, "scale": one.scale}
                if one.levels is None
                else {"name": one.name, "levels": list(one.levels)}
                for one in self.signals
            ],
            "coefficients": list(self.coefficients),
            "training": dict(self.training),
        }
        text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"it cannot be written ({error.strerror})", place=str(path)) from error


def open_gate(path: str | os.PathLike[str]) -> Gate:
    """Read a gate that :meth:`Gate.save` wrote.

    Raises
    ------
    InputError
        When there is no such file.
    SchemaError
        When it is another kind of file, or of a newer version.
    CorruptFileError
        When it is no gate.
    """
    place = str(path)
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", place=place, remedy="check the path") from error
    except ValueError as error:
        raise CorruptFileError(f"it is no JSON ({error})", place=place, remedy="train the gate again") from error
    return gate_from(data, place=place)


def gate_from(data: Any, *, place: str) -> Gate:
    """The gate that plain data describe; `place` is what messages call them.

    Raises
    ------
    SchemaError, CorruptFileError
        As :func:`open_gate`.
    """
    check_schema(data.get("schema") if isinstance(data, dict) else None, GATE_SCHEMA, place=place)
    try:
        gate = _gate_of(data)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"it is no gate ({error!r})", place=place, remedy="train the gate again") from error
    width = len(signal_names(gate.signals)) + 1
    numbers = (*(gate.coefficients or ()), gate.threshold)
    if len(numbers) != width + 1 or not all(math.isfinite(number) for number in numbers):
        raise CorruptFileError(
            f"{len(numbers) - 1} coefficients for {width - 1} columns", place=place, remedy="train the gate again"
        )
    return gate


def _gate_of(data: Mapping[str, Any]) -> Gate:
    signals = tuple(
        Signal(str(one["name"]), tuple(map(str, one["levels"])))
        if "levels" in one
        else Signal(str(one["name"]), None, float(one["mean"]), float(one["scale"]))
        for one in data["signals"]
    )
    if data["invalid"] not in ("class", "missing") or data["stop"] not in (None, "decided", "majority"):
        raise ValueError(f"invalid={data['invalid']!r}, stop={data['stop']!r}")
    return Gate(
        voters=str(data["voters"]),
        first=str(data["first"]),
        others=tuple(map(str, data["others"])),
        classes=tuple(map(str, data["classes"])),
        invalid=data["invalid"],
        stop=data["stop"],
        signals=signals,
        threshold=float(data["threshold"]),
        coefficients=tuple(map(float, data["coefficients"])),
        classifier=None,
        training=dict(data["training"]),
    )
