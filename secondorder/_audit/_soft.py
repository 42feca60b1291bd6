"""Soft verdicts of a run: read again from the stored answers, and laid out as variables of its cube."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from secondorder._schema import CLASS, CODE_MISSING
from secondorder.acquire import AuditSpec, Record, SoftVerdict, make_soft, reread

__all__ = ["SoftVectors", "Softener"]


class Softener:
    """Soft verdict of a call's record, read with its bodies; None where its judge has none, or it has no answer.

    Parameters
    ----------
    spec : AuditSpec

    Attributes
    ----------
    judges : mapping
        The judges with soft verdicts, and how they are read.
    """

    def __init__(self, spec: AuditSpec) -> None:
        self.judges: Mapping[str, Any] = {
            name: msgspec.to_builtins(judge.soft) for name, judge in spec.judges.items() if judge.soft is not None
        }
        self._spec = spec
        self._read = make_soft(spec) if self.judges else None

    def __call__(self, record: Record) -> SoftVerdict | None:
        name = record.call.judge
        completion = reread(record, self._spec.judges[name]) if name in self.judges else None
        if self._read is None or completion is None or record.outcome is None or record.response is None:
            return None
        return self._read(record.call, record.outcome, completion, record.response)


class SoftVectors:
    """Probability vectors by flat position in a grid.

    Parameters
    ----------
    size : int
        Planned calls.
    classes : sequence of str
        ⊥ last.
    """

    def __init__(self, size: int, classes: Sequence[str]) -> None:
        self._vectors = np.full((size, len(classes)), np.nan)
        self._unlisted = np.full(size, np.nan)
        self._code = {label: code for code, label in enumerate(classes)}

    def put(self, at: int, soft: SoftVerdict) -> None:
        """Place one; what is missing to one is ⊥."""
        vector = self._vectors[at]
        vector[:] = 0.0
        for label, probability in soft.probabilities.items():
            vector[self._code[label]] = probability
        vector[-1] = max(0.0, 1.0 - float(vector.sum()))
        self._unlisted[at] = soft.unlisted

    def added_to(self, cube: xr.Dataset, judges: Mapping[str, Any]) -> xr.Dataset:
        """The cube with ``soft`` and ``unlisted``; the calls of judges without are vectors with a single one.

        Its ``verdict`` stays what the same calls sampled; the attribute ``soft`` says of which judges.
        """
        verdict = cube["verdict"]
        codes = verdict.values.reshape(-1)
        hard = np.isnan(self._vectors[:, 0]) & (codes != CODE_MISSING)
        self._vectors[hard] = np.eye(len(self._code))[codes[hard]]
        self._unlisted[hard] = 0.0
        shape = verdict.shape
        return cube.assign(
            soft=((*verdict.dims, CLASS), self._vectors.reshape(*shape, -1)),
            unlisted=(verdict.dims, self._unlisted.reshape(shape)),
        ).assign_attrs(soft=json.dumps(judges))
