"""Position bias: does the judge prefer a slot, and does its verdict change when the candidates are swapped?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import attribute
from secondorder._schema import BOTTOM, ORDER, REPEAT
from secondorder.errors import CubeError
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import drawn_measures
from secondorder.studies._parts import Value, quotient, unit_counts
from secondorder.studies._ratings import Arranged, arrange, check_cube
from secondorder.studies._result import StudyResult, measure_table, measured

__all__ = ["position_bias"]

MEASURES = {
    "first_slot": "verdict for slot 1",
    "second_slot": "verdict for slot 2",
    "neither": "tie or ⊥",
    "preference": "slot 1 − slot 2",
    "decisive_first": "slot 1 of decisive",
    "swap_inconsistency": "swap inconsistency",
    "call_inconsistency": "same order, twice",
    "swap_excess": "swap − same order",
    "primacy": "slot 1 both orders",
    "recency": "slot 2 both orders",
}
ONE_CALL = "one call per cell: call noise is not identifiable; R >= 2 is needed"
REASONS = {
    "decisive_first": "no verdict for a candidate",
    "call_inconsistency": ONE_CALL,
    "swap_excess": ONE_CALL,
}


def position_bias(
    data: xr.Dataset | xr.DataArray,
    *,
    order: str = ORDER,
    repeat: str = REPEAT,
    by: str | Sequence[str] | None = None,
    first: Mapping[str, str] | None = None,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """First-slot preference and swap inconsistency of a pairwise judge, with bands over items.

    Parameters
    ----------
    data : Dataset or DataArray
        A cube whose verdicts name candidates (the order is undone), with both orders.
    order, repeat : str
        Dimensions of the two orders and of repeated calls; a cube without `repeat` has one call per cell.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by; default ``judge`` where it is a dimension.
    first : mapping of order to class, optional
        The class of the candidate that stands first in each of the two orders. Default: the first class in ``AB``, the
        second in ``BA``, where the classes were declared.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        Shares are means over items, both orders weighing alike, so that the candidates' quality cancels:
        ``first_slot``, ``second_slot``, ``neither`` (ties and ⊥), ``preference = first_slot - second_slot`` (0: none),
        ``decisive_first = first_slot / (first_slot + second_slot)`` (1/2: none). For two calls in different orders:
        ``swap_inconsistency`` (other verdicts), of which ``primacy`` (slot 1 both times) and ``recency`` (slot 2 both
        times); for two calls in the same order ``call_inconsistency``; ``swap_excess`` is the difference of the two,
        what swapping adds to call noise (it can be negative by chance).

    Raises
    ------
    CubeError
        When there are not exactly two orders, or it is not known which candidate stands first.

    Notes
    -----
    An item that lacks one order still counts for the other's slot shares; it has no swap. ``n_items`` and ``n_swapped``
    say how many there are of each.

    Examples
    --------
    >>> cube = xr.Dataset(
    ...     {"verdict": (("item", "order"), [[0, 1], [0, 0], [0, 1]])},
    ...     coords={"order": ["AB", "BA"], "class": ["1", "2", "tie"]},
    ... )
    >>> found = position_bias(cube, draws=0)
    >>> float(found["preference"].estimate.round(4)), float(found["primacy"].estimate.round(4))
    (0.6667, 0.6667)
    """
    check_draws(level=level, draws=draws, seed=seed)
    cube = check_cube(data)
    repeated = repeat in cube["verdict"].dims
    laid = arrange(cube, inner=[order, repeat] if repeated else [order], by=by)
    codes = laid.codes if repeated else laid.codes[..., None]
    slots = _slots(laid, first, in_order=bool(attribute(cube, "classes_declared", True)))
    parts = [_columns(unit_counts(group, len(laid.classes)), slots) for group in codes]
    width = parts[0].shape[1]
    values = [[_value(name, float(x[0])) for name, x in _measures(part.sum(0)[None]).items()] for part in parts]
    sums = resampled_sums(np.concatenate(parts, axis=1), draws=draws, seed=seed, strata=laid.strata)
    held = np.stack(
        [np.stack(list(_measures(sums[:, g * width : (g + 1) * width]).values())) for g in range(len(parts))]
    )
    found, drawn = measured(
        by=laid.by,
        measures=list(MEASURES),
        values=values,
        draws=held,
        level=level,
        counts={
            "n_items": (codes >= 0).any(axis=(2, 3, 4)).sum(1),
            "n_swapped": (codes >= 0).any(-1).all(-1).any(-1).sum(1),
            "n_invalid": laid.n_invalid,
            "n_missing": laid.n_missing,
        },
    )
    table = measure_table(
        "", found, by=laid.by, labels=MEASURES, counts=("n_items", "n_swapped", "n_invalid", "n_missing")
    )
    stands = ", ".join(f"{name}: {laid.classes[slots[o, 0]]}" for o, name in enumerate(laid.inner[0]))
    figure = drawn_measures(
        found.sel(measure=["preference", "swap_inconsistency", "call_inconsistency", "swap_excess"]),
        MEASURES,
        title="Position bias",
    )
    return StudyResult("Position bias", found, (table,), (f"First slot in {stands}.",), drawn, (figure,))


def _slots(laid: Arranged, first: Mapping[str, str] | None, *, in_order: bool) -> NDArray[np.int64]:
    # Code of the candidate in slot 1 and in slot 2, for each of the two orders.
    orders = laid.inner[0]
    if len(orders) != 2:
        raise CubeError(f"orders {list(orders)}", place="order", remedy="position bias needs exactly two")
    valid = [label for label in laid.classes if label != BOTTOM]
    if first is None:
        if not in_order:
            raise CubeError(
                f"the classes {', '.join(valid)} stand in the order of the alphabet, which names no candidate",
                place="order",
                remedy="give classes=, the candidates first, or say whose class stands first: first={order: class}",
            )
        if set(orders) != {"AB", "BA"} or len(valid) < 2:
            raise CubeError(
                f"orders {list(orders)} do not say who stands first",
                place="order",
                remedy="say for both whose class that is: first={order: class}",
            )
        first = {"AB": valid[0], "BA": valid[1]}
    shown = [first.get(name) for name in orders]
    if shown[0] not in valid or shown[1] not in valid or shown[0] == shown[1]:
        raise CubeError(
            f"first={dict(first)}", place="first", remedy=f"name two different classes of {valid} for {list(orders)}"
        )
    a, b = valid.index(str(shown[0])), valid.index(str(shown[1]))
    return np.array([[a, b], [b, a]])


def _columns(counts: Array, slots: NDArray[np.int64]) -> Array:
    """Per item: sums and sizes of the slot shares of each order, of the swaps, and of the repeated pairs.

    counts: (items, rest, orders, classes). Inside an item the cells weigh alike.
    """
    n = counts.sum(-1)
    share = counts / np.maximum(n, 1)[..., None]
    here = (n > 0).astype(float)
    slot = np.stack([share[..., o, slots[o]] for o in (0, 1)], axis=2)  # (items, rest, order, slot)
    cells = here.sum(1)
    slot_mean = slot.sum(1) / np.maximum(cells, 1)[..., None]
    both = here.prod(-1)
    same = (share[..., 0, :] * share[..., 1, :]).sum(-1)
    swap = np.stack([1 - same, slot[..., 0, 0] * slot[..., 1, 0], slot[..., 0, 1] * slot[..., 1, 1]], axis=-1)
    swapped = both.sum(1)
    swap_mean = (swap * both[..., None]).sum(1) / np.maximum(swapped, 1)[:, None]
    twice = n >= 2
    apart = np.where(twice, 1 - ((counts * counts).sum(-1) - n) / np.maximum(n * (n - 1), 1), 0.0)
    pairs = twice.sum((1, 2))
    return np.concatenate(
        [
            slot_mean.reshape(len(counts), 4),
            (cells > 0).astype(float),
            swap_mean,
            (swapped > 0).astype(float)[:, None],
            (apart.sum((1, 2)) / np.maximum(pairs, 1))[:, None],
            (pairs > 0).astype(float)[:, None],
        ],
        axis=1,
    )


def _measures(sums: Array) -> dict[str, Array]:
    slot = quotient(sums[:, :4].reshape(-1, 2, 2), sums[:, 4:6, None]).mean(1)
    swap = quotient(sums[:, 6:9], sums[:, 9:10])
    call = quotient(sums[:, 10], sums[:, 11])
    first, second = slot[:, 0], slot[:, 1]
    return {
        "first_slot": first,
        "second_slot": second,
        "neither": 1 - first - second,
        "preference": first - second,
        "decisive_first": quotient(first, first + second),
        "swap_inconsistency": swap[:, 0],
        "call_inconsistency": call,
        "swap_excess": swap[:, 0] - call,
        "primacy": swap[:, 1],
        "recency": swap[:, 2],
    }


def _value(name: str, number: float) -> Value:
    return Value(number, "" if not np.isnan(number) else REASONS.get(name, "no item was judged in both orders"))
