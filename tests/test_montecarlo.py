"""Counts and calls drawn from known laws: against probabilities by factorials, and against a plain search.

Random checks fail without cause at a rate of 1e-6 each and say what they would see.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest

from secondorder.core._law_tables import NEVER, call_tables, compositions, count_tables, n_compositions
from secondorder.core._montecarlo import (
    CallCoupling,
    Sampling,
    block_size,
    counts_of_codes,
    counts_of_outcomes,
    draw_codes,
    draw_outcomes,
    draw_rows,
    fixed_rows,
    hashed_key,
)
from secondorder.core._precision import double_precision, seed_key
from secondorder.testing import assert_mean, enumerate_outcomes

LAW = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75], [0.1, 0.9, 0.0]])
CALLS = np.array([3, 2, 3, 2])
FIXED = Sampling((), 1, ((4, 4, "fixed"),))
SIZE = 4096


def drawn(tables: Any, rows: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcome numbers, and counts with the class last."""
    with double_precision():
        outcomes = draw_outcomes(seed_key(seed), tables, rows)
        counts = np.stack(counts_of_outcomes(tables, outcomes), axis=-1)
    return np.asarray(outcomes), counts


def rows_of(sampling: Sampling, weights: Any = (1.0,), seed: int = 0, size: int = SIZE) -> Any:
    with double_precision():
        return draw_rows(seed_key(seed), np.asarray(weights, dtype=float), sampling, size)


def codes_of(coupling: CallCoupling, repeats: int = 4, end: Any = None, seed: int = 1) -> np.ndarray:
    """Calls of two items of two cells with one law, and two cells with others."""
    law = np.concatenate([LAW[[0, 0, 2, 3]]] * 2)
    last = None if end is None else np.concatenate([end[[0, 0, 2, 3]]] * 2)
    with double_precision():
        tables = call_tables(law, np.full(len(law), repeats), last)
        rows = draw_rows(seed_key(0), np.ones(2), Sampling((), 2, ((4, 4, "fixed"),)), SIZE)
        return np.asarray(draw_codes(seed_key(seed), tables, rows, repeats, coupling))


@pytest.mark.parametrize(("total", "parts"), [(0, 3), (1, 1), (4, 2), (3, 4), (8, 4)])
def test_compositions_are_all_and_each_once(total: int, parts: int) -> None:
    found = compositions(total, parts)
    assert len(found) == n_compositions(total, parts) == len({tuple(row) for row in found.tolist()})
    assert (found >= 0).all()
    assert (found.sum(-1) == total).all()


def test_tables_hold_multinomial_probabilities() -> None:
    tables = count_tables(LAW, CALLS)
    for row, (law, calls) in enumerate(zip(LAW, CALLS, strict=True)):
        exact = enumerate_outcomes([[Fraction(float(p)).limit_denominator(1000) for p in law]], int(calls))
        expected = {tuple(counts[0]): float(p) for counts, p in exact}
        edges = np.concatenate([[0.0], tables.cumulative[row]])
        last = int(np.argmax(edges == NEVER))
        edges[last:] = 1.0
        for place, mass in enumerate(np.diff(edges)):
            counts = tuple(tables.counts[tables.first[row] + place].tolist()) if mass > 0 else None
            assert mass == pytest.approx(expected.pop(counts, 0.0), abs=1e-15)
        assert not expected


def test_outcomes_are_those_of_a_plain_search() -> None:
    tables = count_tables(LAW, CALLS)
    rows = rows_of(FIXED)
    outcomes, counts = drawn(tables, rows, seed=3)
    with double_precision():
        uniform = np.asarray(jax.random.uniform(seed_key(3), rows.shape, dtype=np.float64))
    for row in range(4):
        place = np.searchsorted(tables.cumulative[row], uniform[row, 0], side="right")
        assert (outcomes[row, 0] == tables.first[row] + place).all()
    assert (counts.sum(-1) == CALLS[:, None, None]).all()
    # Impossible classes never come up, and a certain one always does.
    assert (counts[1, 0] == [0, 2, 0]).all()
    assert (counts[2, 0, :, 1] == 0).all()
    assert (counts[3, 0, :, 2] == 0).all()


def test_counts_have_the_law_as_mean() -> None:
    # Sees .03 in a mean count of the first cell.
    _, counts = drawn(count_tables(LAW, CALLS), rows_of(FIXED), seed=4)
    check = assert_mean(counts[0, 0], 3 * LAW[0], false_fail_rate=1e-6, must_detect=0.12)
    assert check.detectable.max() > 0


def test_items_are_drawn_by_weight_and_levels_by_policy_or_list() -> None:
    sampling = Sampling(((3, 0, 2), (2, 2, 3)), 5, ((2, 4, "policy"), (3, 3, "list"), (2, 2, "fixed")))
    weights = [0.25, 0.75, 0.2, 0.3, 0.5]
    rows = np.asarray(rows_of(sampling, weights))
    assert rows.shape == (2, 3, 2, 5, SIZE)
    item, policy, listed, fixed = np.unravel_index(rows, (5, 4, 3, 2))
    # Items are shared by all cells of a replicate, levels by all items.
    assert (item == item[:1, :1, :1]).all()
    assert (policy == policy[:, :1, :1, :1]).all()
    assert (listed == listed[:1, :, :1, :1]).all()
    assert (fixed[:, :, 0] == 0).all()
    assert (fixed[:, :, 1] == 1).all()
    assert item[..., :3, :].max() == 1
    assert item[..., 3:, :].min() == 2
    # A list is drawn without replacement: three of three are a permutation.
    assert (np.sort(listed[0, :, 0, 0], axis=0) == np.arange(3)[:, None]).all()
    # Shares: sees .05.
    shares = [(item[0, 0, 0, 0] == 1), (item[0, 0, 0, 3] == 4), (policy[0, 0, 0, 0] == 2), (listed[0, 0, 0, 0] == 1)]
    assert_mean(np.array(shares, dtype=float).T, [0.75, 0.5, 0.25, 1 / 3], must_detect=0.08)


def test_uncoupled_calls_follow_the_law_and_are_independent() -> None:
    codes = codes_of(CallCoupling())
    assert codes.shape == (4, 4, 2, SIZE)
    first = codes[0, 0, 0] == 0
    together = np.stack([first, first & (codes[0, 1, 0] == 0), first & (codes[1, 0, 0] == 0)], axis=-1)
    assert_mean(together.astype(float), [0.5, 0.25, 0.25], must_detect=0.08)
    assert (codes[:, 2] != 1).all()


@pytest.mark.parametrize("kind", ["seed", "seed-all", "cache", "duplicate"])
def test_coupling_leaves_the_law_of_a_call_alone(kind: Any) -> None:
    codes = codes_of(CallCoupling(kind, 0.5), seed=5)
    shares = np.stack([codes[r, 0, i] == 0 for r in range(4) for i in range(2)], axis=-1)
    assert_mean(shares.astype(float), 0.5, must_detect=0.08)


def test_full_coupling_ties_the_calls_that_it_names() -> None:
    seeds = codes_of(CallCoupling("seed"))
    assert (seeds[:, 0] == seeds[:, 1]).all()
    assert (seeds[:, 0, 0] != seeds[:, 0, 1]).any()
    assert (seeds[0] != seeds[1]).any()
    everywhere = codes_of(CallCoupling("seed-all"))
    assert (everywhere[:, 0, 0] == everywhere[:, 0, 1]).all()
    cached = codes_of(CallCoupling("cache"))
    assert (cached == cached[:1]).all()
    assert (cached[:, 0] != cached[:, 1]).any()
    twice = codes_of(CallCoupling("duplicate"))
    assert (twice[0] == twice[1]).all()
    assert (twice[2] == twice[3]).all()
    assert (twice[0] != twice[2]).any()


def test_a_drifting_law_starts_and_ends_where_it_says() -> None:
    end = np.roll(LAW, 1, axis=1)
    codes = codes_of(CallCoupling(), end=end)
    middle = LAW[0] + (end[0] - LAW[0]) / 3
    found = np.stack([codes[r, 0, 0] == 0 for r in (0, 1, 3)], axis=-1)
    assert_mean(found.astype(float), [LAW[0, 0], middle[0], end[0, 0]], must_detect=0.08)


def test_shorter_cells_have_no_later_calls() -> None:
    with double_precision():
        tables = call_tables(LAW, CALLS)
        codes = draw_codes(seed_key(1), tables, rows_of(FIXED), 3, CallCoupling())
        counts = np.stack(counts_of_codes(codes, 3), axis=-1)
    assert (np.asarray(codes)[2, 1] == -1).all()
    assert (counts.sum(-1) == CALLS[:, None, None]).all()


def test_rows_that_are_not_drawn_are_those_that_would_be() -> None:
    sampling = Sampling((), 3, ((4, 4, "fixed"), (2, 2, "fixed")))
    with double_precision():
        found = np.asarray(fixed_rows(sampling, 8))
    assert (found == np.asarray(rows_of(sampling, np.ones(3), size=8))).all()


def test_keys_differ_in_every_part() -> None:
    parts = [(1, "a", 0, "rows"), (2, "a", 0, "rows"), (1, "b", 0, "rows"), (1, "a", 1, "rows"), (-1, "a", 0, "rows")]
    keys = {tuple(np.asarray(jax.random.key_data(hashed_key(*part))).tolist()) for part in parts}
    assert len(keys) == len(parts)
    assert hashed_key(2**70, "any seed").dtype == seed_key(0).dtype


def test_a_block_is_a_power_of_two_that_shrinks_with_the_design() -> None:
    sizes = [block_size(cells) for cells in (1, 12, 100, 2400, 12_000, 10**7)]
    assert sizes == sorted(sizes, reverse=True)
    assert all(math.log2(size).is_integer() for size in sizes)
    assert sizes[-1] == 1
