"""Ranks of systems under prompts: pairs by hand, HANNA, and what call noise alone reverses."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.stats as ss
import xarray as xr

from secondorder.studies import rank_reversals
from secondorder.studies._call_noise import split_calls
from secondorder.studies._ranks import compare, system_ranks

from .real_scores import CRITERIA, JUDGES

# Ranks ----------------------------------------------------------------------------------------------------------------


def brute(a: list[float], b: list[float]) -> dict[str, float]:
    """The measures of two orders, pair by pair."""
    pairs = list(combinations(range(len(a)), 2))
    flips = [(a[i] - a[j]) * (b[i] - b[j]) < 0 for i, j in pairs]
    ties = [a[i] == a[j] or b[i] == b[j] for i, j in pairs]

    def near(x: list[float], i: int, j: int) -> bool:
        low, high = min(x[i], x[j]), max(x[i], x[j])
        return low < high and not any(low < other < high for other in x)

    weight = [near(a, i, j) + near(b, i, j) for i, j in pairs]
    rank = [[1 + sum(other > value for other in x) for value in x] for x in (a, b)]
    return {
        "tau": ss.kendalltau(a, b)[0],
        "reversals": float(np.mean(flips)),
        "ties": float(np.mean(ties)),
        "near": sum(weight),
        "near_flips": sum(w * f for w, f in zip(weight, flips, strict=True)),
        "rank_changes": float(np.mean(np.array(rank[0]) != np.array(rank[1]))),
        "top_changes": float(
            {i for i, r in enumerate(rank[0]) if r == 1} != {i for i, r in enumerate(rank[1]) if r == 1}
        ),
    }


def test_orders_are_compared_pair_by_pair_with_ties_apart() -> None:
    rng = np.random.default_rng(0)
    means = rng.integers(0, 5, (40, 6, 3)).astype(float)
    found = compare(means)
    for d in range(40):
        pairs = [brute(means[d, :, k].tolist(), means[d, :, m].tolist()) for k, m in combinations(range(3), 2)]
        for name, values in found._asdict().items():
            right = (
                sum(pair["near_flips"] for pair in pairs) / sum(pair["near"] for pair in pairs)
                if name == "adjacent"
                else np.mean([pair[name] for pair in pairs])
            )
            assert values[d] == pytest.approx(right, abs=1e-12, nan_ok=True), name
    ranks, _ = system_ranks(np.array([[3.0], [1.0], [3.0], [2.0]]))
    assert ranks[:, 0].tolist() == [1, 4, 1, 3]
    near = np.array([[0.1 + 0.2, 0.3], [0.3, 0.3]])  # rounding is no order
    assert compare(near).ties == 1


def test_hanna_tau_of_the_systems_between_prompts(hanna: xr.Dataset) -> None:
    data = hanna.drop_vars("human")
    by = ["judge", "criterion"]
    shipped = rank_reversals(data, by=by, draws=0)
    checked = rank_reversals(data, by=by, valid=(1, 5), draws=0)
    assert shipped.data.sizes["system"] == 11
    assert int(checked.data["n_invalid"].sum()) == 1051
    assert int(shipped.data["n_invalid"].sum()) == 0
    for judge, criterion in [(j, c) for j in JUDGES for c in CRITERIA]:
        score = data["score"].sel(judge=judge, criterion=criterion).to_numpy()
        kept = np.where((score >= 1).all(0), score, np.nan)
        for result, table in ((shipped, score), (checked, kept)):
            means = np.round(np.nanmean(table, axis=-1), 9)
            tau = result.data["tau_pairs"].sel(judge=judge, criterion=criterion)
            for a, b in combinations(range(4), 2):
                assert float(tau[a, b]) == pytest.approx(ss.kendalltau(means[a], means[b])[0], abs=1e-9)
    change = abs(shipped.data["tau_pairs"] - checked.data["tau_pairs"]).max(("prompt", "other"))
    assert float(change.max()) > 0.15
    assert float(change.sel(judge="ChatGPT").max()) < 0.05
    # A system moves by up to this many places when failures count as scores of less than 1.
    assert int(abs(shipped.data["rank"] - checked.data["rank"]).max()) >= 2


def test_reversals_that_the_items_can_tell(hanna: xr.Dataset) -> None:
    data = hanna.drop_vars("human").sel(criterion="CH", judge=["ChatGPT"]).drop_vars("criterion")
    found = rank_reversals(data, valid=(1, 5), draws=300)
    shares = [found.data[f"sure_{name}"].item() for name in ("kept", "reversed", "undecided")]
    assert sum(shares) == pytest.approx(1)
    assert shares[1] <= found["reversals"].estimate.item()
    assert "R >= 2 is needed" in " ".join(str(found).split())
    assert "by call noise alone" not in str(found.tables[0])
    assert found.section().figures[0].svg.startswith("<svg")
    table = next(table for table in found.tables if table.title.startswith("Kendall"))
    tau = found.data["tau_pairs"].squeeze("judge").to_numpy()
    assert [row[1:] for row in table.rows] == [
        ("1", *tau[0, 1:]), ("2", None, *tau[1, 2:]), ("3", None, None, tau[2, 3]),
    ]  # fmt: skip


# Call noise -----------------------------------------------------------------------------------------------------------


def test_halves_of_a_cell_are_disjoint_and_of_equal_size() -> None:
    rng = np.random.default_rng(0)
    values = 2.0 ** np.arange(5)[None, None, None, :] * np.ones((50, 1, 1, 1))
    values[:10, ..., 4] = np.nan
    first, second = split_calls(values, rng)
    sums = [(half[:, 0] * 2).astype(int) for half in (first, second)]
    assert all((s & t) == 0 for s, t in zip(*sums, strict=True))  # no call in both: bits of the sums do not meet
    assert all(bin(s).count("1") == 2 for half in sums for s in half)
    assert all(s < 16 for half in sums for s in half[:10])
    values[0, ..., 1:] = np.nan
    assert np.isnan(split_calls(values, rng)[0][0, 0])


def test_call_noise_alone_reverses_as_often_as_prompts_that_do_not_differ() -> None:
    # 40 studies, systems close together, prompts without effect: the difference has mean 0. Limit of 4 standard errors
    # of the mean: false alarm 6e-5 (t with 39 df: 3e-4); it sees a mean of about 4 x .005 = .02, and counting the same
    # calls on both sides (the planted fault) shifts it by .09.
    rng = np.random.default_rng(1)
    gaps, levels = [], []
    for _ in range(40):
        quality = 0.15 * np.arange(5)
        score = rng.normal(size=(12, 1, 1, 1)) + quality[None, :, None, None] + rng.normal(size=(12, 5, 3, 4))
        data = xr.Dataset({"score": (("item", "system", "prompt", "repeat"), score)})
        found = rank_reversals(data, draws=0, splits=20)
        gaps.append(float(found["reversals_excess"].estimate))
        levels.append(float(found["reversals_noise"].estimate))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / np.sqrt(40)
    assert np.mean(levels) > 0.1


def test_deterministic_judges_have_reversals_but_no_call_noise() -> None:
    rng = np.random.default_rng(0)
    score = np.repeat(rng.normal(size=(10, 4, 3, 1)), 4, axis=-1)
    found = rank_reversals(xr.Dataset({"score": (("item", "system", "prompt", "repeat"), score)}), draws=100)
    assert float(found["reversals_noise"].estimate) == 0
    assert float(found["reversals_half"].estimate) == pytest.approx(float(found["reversals"].estimate))
    assert float(found["reversals_excess"].lower) >= 0
    assert "resampled, 50 random splits" in " ".join(str(found).split())
    assert "halves of 2 calls" in " ".join(str(found).split())
    assert found["reversals_noise"].reason.item().startswith("given these items")
