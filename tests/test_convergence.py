"""Convergence: stopping times against every order by hand, and what full aggregation costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
import pytest

from secondorder.errors import InputError
from secondorder.studies import convergence, convergence_cost
from secondorder.studies._stopping import stop_law, stop_times

from .small_cubes import cube_of


def stopped(votes: Sequence[int], rule: str) -> int:
    """First m at which a rule holds; len + 1 for never."""
    size = len(votes)
    for m in range(1, size + 1):
        ranked = [*sorted(Counter(votes[:m]).values(), reverse=True), 0]
        if ranked[0] > size // 2 if rule == "majority" else ranked[0] - ranked[1] > size - m:
            return m
    return size + 1


@pytest.mark.parametrize("rule", ["majority", "decided"])
def test_stopping_times_equal_every_order_by_hand(rule: str) -> None:
    for size in (2, 4, 5):
        for votes in {tuple(sorted(v)) for v in product(range(3), repeat=size)}:
            one_hot = np.eye(3)[list(votes)]
            declared = stop_times(one_hot, rule=rule)  # type: ignore[arg-type]
            assert declared.tolist() == [float(stopped(votes, rule) == m) for m in range(1, size + 2)]
            orders = [stopped(order, rule) for order in permutations(votes)]
            expected = [orders.count(m) / len(orders) for m in range(1, size + 2)]
            law = stop_law(one_hot.sum(0)[None], rule=rule, n_voters=size)[0]  # type: ignore[arg-type]
            np.testing.assert_allclose(law, expected, atol=1e-12)


@pytest.mark.parametrize("rule", ["majority", "decided"])
def test_silent_voters_and_large_panels_have_exact_stopping_times_too(rule: str) -> None:
    for votes in ([0, 0, 1, -1, -1], [0, 0, 0, -1, 1], [0, 1, 2, 0, -1], [-1, -1, -1]):
        orders = [
            np.array([[float(v == c) for c in range(3)] for v in order])[None] for order in set(permutations(votes))
        ]
        expected = np.mean([stop_times(one, rule=rule)[0] for one in orders], axis=0)  # type: ignore[arg-type]
        counts = np.array([[votes.count(c) for c in range(3)]], dtype=float)
        np.testing.assert_allclose(stop_law(counts, rule=rule, n_voters=len(votes))[0], expected, atol=1e-12)  # type: ignore[arg-type]
    # 96 voters and ten classes: drawn orders. Each share is off by 5 standard errors with probability below 6e-7.
    counts = np.array([60.0, 12, 8, 5, 4, 3, 2, 1, 1, 0])
    law = stop_law(counts[None], rule=rule, n_voters=96)[0]  # type: ignore[arg-type]
    rng = np.random.default_rng(3)
    voters = np.repeat(np.arange(10), counts.astype(int))
    drawn = np.eye(10)[np.stack([rng.permutation(voters) for _ in range(2000)])]
    share = stop_times(drawn, rule=rule).mean(0)  # type: ignore[arg-type]
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert (np.abs(share - law) <= 5 * np.sqrt(law * (1 - law) / 2000) + 1 / 2000).all()
    with pytest.raises(InputError, match="1001 voters"):
        stop_law(np.array([[1001.0]]), rule=rule, n_voters=1001)  # type: ignore[arg-type]


def test_a_decided_outcome_cannot_change_and_an_undecided_one_can() -> None:
    for votes in product(range(2), repeat=5):
        m = stopped(votes, "decided")
        for k in range(1, 5):
            ends = {
                max(Counter(v).items(), key=lambda x: (x[1], -x[0]))[0]
                for rest in product(range(2), repeat=5 - k)
                for v in [(*votes[:k], *rest)]
            }
            assert (len(ends) == 1) == (k >= m)


def test_cost_of_full_aggregation_is_the_paper_s() -> None:
    assert convergence_cost({3: 0.3768, 5: 0.2105}, voters=5) == pytest.approx(4.2464, abs=1e-12)
    with pytest.raises(InputError, match=r"sum to 1\.1"):
        convergence_cost({3: 0.9, 5: 0.2}, voters=5)
    with pytest.raises(InputError, match=r"times in 1\.\.5"):
        convergence_cost({6: 0.2}, voters=5)


def test_consensus_of_the_default() -> None:
    verdict = [[0, 0, 0, 1, 1], [0, 1, 0, 1, 2], [1, 0, 0, 0, 0], [2, 2, 2, 2, 2], [0, 0, -1, 0, 0]]
    cube = cube_of(verdict, ("item", "prompt"), list("ABC"), prompt=list("vwxyz"))
    found = convergence(cube, draws=0)
    got = {name: float(found[name].estimate) for name in found.data["measure"].to_numpy()}
    assert int(found.data["n_events"]) == 4
    assert int(found.data["n_left_out"]) == 1
    assert got["default_is_plurality"] == 0.5  # item 2 is tied, item 3 disagrees
    assert got["default_is_clear_plurality"] == pytest.approx(2 / 3)
    assert (got["plurality"], got["majority"], got["unanimous"]) == (0.75, 0.75, 0.25)
    assert [got[f"majority_{k}"] for k in ("stop_3", "stop_4", "stop_5", "never")] == [0.5, 0.25, 0, 0.25]
    assert got["majority_calls"] == (3 + 5 + 4 + 3) / 4
    other = convergence(cube, default="w", draws=0)
    assert float(other["default_is_plurality"].estimate) == 0.75
    tied = convergence(cube_of([[0, 1]], ("item", "prompt"), ["A", "B"]), draws=0)
    assert "tied" in str(tied["default_is_clear_plurality"].reason.item())
