"""A data-generating mechanism: a law, how a replicate draws items and levels from it, and how its calls depend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._canon import canonical_json, sha256_hex
from secondorder._design import Facet
from secondorder.errors import SpecError
from secondorder.simulate._law import (
    Kernel,
    as_law,
    class_names,
    facet_names,
    kernel_matrix,
)

__all__ = ["Dependence", "Mechanism"]

Matrix = NDArray[np.float64]


class Dependence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes calls depend on each other, as served judges do; the law of a single call stays what it is.

    Parameters
    ----------
    kind : str
        ``seed``: the calls at one repeat of one item share their random number; ``seed-all``: those of all items do;
        ``cache``: a repeat is answered with the first call of its cell; ``duplicate``: every second row is the row
        before it, once more.
    share : float
        Probability that a call is touched by it.
    """

    kind: Literal["seed", "seed-all", "cache", "duplicate"]
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("seed", "seed-all", "cache", "duplicate"):
            raise SpecError(f"kind {self.kind!r}", place="dependence", remedy="say seed, seed-all, cache or duplicate")
        if not 0 <= self.share <= 1:
            raise SpecError(f"share {self.share:g}", place="dependence", remedy="give a probability")


class Mechanism(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """How one replicate's verdicts come about, and therefore what the truth is.

    Parameters
    ----------
    law : DataArray, dims (item, facets..., class)
        See :mod:`secondorder.simulate.laws`.
    repeats : int or array of int, shape (L_1, ..., L_J)
        Calls per cell.
    facets : sequence of str or Facet, optional
        Default: every facet of the law, fixed, equal weights.
    levels : mapping of facet to int, optional
        For a random facet: how many of the law's levels a replicate draws. ``Facet(name, kind="random")`` draws them
        independently, with ``population`` (the number of listed levels) without replacement. The truth is the value
        for the policy "uniform over the law's levels".
    items : int or mapping of stratum to int, optional
        Items that a replicate draws from the law's items, by their ``weight``; with a mapping, within each value of
        the law's coordinate ``stratum``. Default: the law's items are the data set, the same in every replicate.
    kernel : str or matrix
    dependence : Dependence, optional
    drift_to : DataArray, optional
        The law at the last repeat; from the first to the last it moves in equal steps, and the truth is that of the
        law averaged over the repeats.
    truth : mapping of str to float, optional
        True values of estimands that are not components.

    Examples
    --------
    >>> from secondorder.simulate import laws
    >>> Mechanism(laws.exchangeable([0.5, 0.5], {"prompt": 4}), repeats=2).digest()[:8]
    '...'
    """

    law: xr.DataArray
    repeats: Any
    facets: Sequence[str | Facet] = ()
    levels: Mapping[str, int] = {}
    items: int | Mapping[str, int] | None = None
    kernel: Kernel = "nominal"
    dependence: Dependence | None = None
    drift_to: xr.DataArray | None = None
    truth: Mapping[str, float] = {}

    def digest(self) -> str:
        """SHA-256 of everything that decides what is drawn and what is true, whatever code made it."""
        law = as_law(self.law)
        items: Any = dict(self.items) if isinstance(self.items, Mapping) else self.items
        described = {
            "law": _described(law),
            "repeats": np.asarray(self.repeats).tolist(),
            "facets": [msgspec.to_builtins(facet) for facet in self.declared()],
            "levels": dict(self.levels),
            "items": items,
            "kernel": kernel_matrix(self.kernel, class_names(law)).tolist(),
            "dependence": None if self.dependence is None else msgspec.to_builtins(self.dependence),
            "drift_to": None if self.drift_to is None else _described(as_law(self.drift_to)),
            "truth": dict(self.truth),
        }
        return sha256_hex(canonical_json(described))

    def declared(self) -> tuple[Facet, ...]:
        """The facets, declared or by default, in the order of the law's dimensions."""
        names = facet_names(as_law(self.law))
        given = {entry if isinstance(entry, str) else entry.name: entry for entry in self.facets}
        unknown = [name for name in (*given, *self.levels) if name not in names]
        if unknown:
            raise SpecError(
                f"facet {unknown[0]!r} is not in the law", place="mechanism", remedy=f"facets: {', '.join(names)}"
            )
        facets = []
        for name in names:
            entry = given.get(name, name)
            facets.append(Facet(entry) if isinstance(entry, str) else entry)
        return tuple(facets)


def _described(law: xr.DataArray) -> dict[str, Any]:
    coordinates = {str(name): np.asarray(law[name].values).astype(str).tolist() for name in law.coords}
    values = np.ascontiguousarray(law.values, dtype="<f8")
    return {"dims": list(map(str, law.dims)), "coords": coordinates, "values": sha256_hex(values.tobytes())}
