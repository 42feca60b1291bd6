"""The verdicts behind a group's numbers, kept for errors and tests that are computed on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondorder.core._cells import Cells, cells_from_codes, cells_from_soft
from secondorder.core._precision import double_precision

__all__ = ["Calls"]


@dataclass(frozen=True, eq=False)
class Calls:
    """Verdicts of the items of a group.

    Attributes
    ----------
    codes : array of int, shape (N, L_1, ..., L_J, R)
        -1 is a call without verdict.
    kernel : array, shape (C, C)
    soft : array, shape (N, L_1, ..., L_J, R, C), or None
        Soft verdicts; NaN where missing.
    """

    codes: NDArray[Any]
    kernel: NDArray[np.float64]
    soft: NDArray[np.float64] | None = None

    def of(self, items: NDArray[np.int64]) -> Calls:
        """The calls of some of the items."""
        return Calls(self.codes[items], self.kernel, None if self.soft is None else self.soft[items])

    @property
    def is_spread(self) -> bool:
        """Whether any verdict is soft indeed: spread over several classes."""
        return self.soft is not None and bool((self.soft.max(-1) < 1.0).any())

    def verdicts(self) -> NDArray[Any]:
        """Soft verdicts where there are any, else class codes: what tests take."""
        return self.codes if self.soft is None else self.soft

    def vectors(self) -> NDArray[np.float64]:
        """Verdict vectors ``(N, L_1, ..., L_J, R, C)``, NaN where there is no verdict."""
        if self.soft is not None:
            return self.soft
        table = np.vstack([np.eye(len(self.kernel)), np.full(len(self.kernel), np.nan)])
        return np.asarray(table[self.codes])

    def cells(self) -> Cells:
        """Sufficient statistics of every cell."""
        with double_precision():
            if self.soft is None:
                return cells_from_codes(self.codes, len(self.kernel))
            return Cells(*map(np.asarray, cells_from_soft(self.soft, self.kernel)))
