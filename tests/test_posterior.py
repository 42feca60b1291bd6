"""The Bayesian companion: its sampler by simulation-based calibration, its limits, and the trees of draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import secondorder as so
from secondorder import core
from secondorder._design import Design, standard_components
from secondorder.core._posterior import (
    Prior,
    _later_customers,
    _tables,
    posterior_components,
    posterior_laws,
)
from secondorder.errors import InputError

DESIGN = Design.balanced({"prompt": 3})
COMPONENTS = standard_components(DESIGN.names)
NOMINAL = 1 - np.eye(3)
PRIOR = Prior(mass=0.7, shape=2.0, rate=0.2)


def from_prior(items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Laws drawn from the prior, shape (items, 3, 3), and their concentrations."""
    generator = np.random.default_rng(seed)
    kappa = generator.gamma(PRIOR.shape, 1 / PRIOR.rate, items)
    mean = generator.dirichlet([PRIOR.mass] * 3, items)
    weights = generator.standard_gamma(np.maximum(kappa[:, None, None] * mean[:, None, :], 1e-12), (items, 3, 3))
    return weights / weights.sum(-1, keepdims=True), kappa


def counts_of(laws: np.ndarray, calls: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).multinomial(calls, laws)


def test_truth_drawn_from_the_prior_has_a_uniform_rank_among_the_draws() -> None:
    # Items are independent data sets: 3,000 of them, 19 nearly independent draws each. Ranks in 20 classes for the
    # three components and the concentration: chi-square on 19 df beyond its 1e-7 point fails one of four by chance
    # with 4e-7; a tenth of the ranks moved from one half to the other is found with probability .99.
    laws, kappa = from_prior(3000, 1)
    truth = np.asarray(core.at_law(laws, DESIGN, COMPONENTS, NOMINAL))
    values, concentration = posterior_components(
        counts_of(laws, 4, 2), DESIGN, COMPONENTS, NOMINAL, seed=3, prior=PRIOR, draws=19 * 8, tune=60, chains=1
    )
    pairs = [(truth[:, j], values[0, 7::8, :, j]) for j in range(3)]
    pairs.append((kappa, concentration[0, 7::8]))
    for true, drawn in pairs:
        # A component that is exactly 0 in truth and in every draw ties: such items have no rank of their own.
        spread = np.random.default_rng(4).random((20, len(true))) * 1e-12
        rank = ((drawn + spread[:19]) < true + spread[19]).sum(0)
        counts = np.bincount(rank, minlength=20)
        statistic = ((counts - 150.0) ** 2 / 150).sum()
        assert statistic < chi2.isf(1e-7, 19), counts


def test_tables_have_their_expected_number() -> None:
    """The sum of ``w / (w + i)`` over the customers of a class; nobody opens none, the first one always one."""
    counts = np.array([[[5, 0, 1], [0, 0, 0]], [[2, 3, 0], [1, 1, 16]]], dtype=float)
    weight = np.broadcast_to(np.array([[0.3, 1.0, 2.0], [0.5, 0.1, 4.0]]), (20_000, 2, 3))
    found = _tables(np.random.default_rng(0), weight, counts, _later_customers(counts))
    for place in np.ndindex(*counts.shape):
        w = weight[0, place[0], place[2]]
        chances = [w / (w + i) for i in range(int(counts[place]))]
        spread = np.sqrt(sum(p * (1 - p) for p in chances) / 20_000)
        # Twelve means, each off by five standard errors with probability below 6e-7.
        assert abs(found[:, *place].mean() - sum(chances)) <= 5 * spread + 1e-12


def test_with_many_calls_the_posterior_is_at_the_truth() -> None:
    laws, _ = from_prior(40, 5)
    values, _ = posterior_components(
        counts_of(laws, 400, 6), DESIGN, COMPONENTS, NOMINAL, seed=0, prior=PRIOR, draws=30, tune=30, chains=2
    )
    truth = np.asarray(core.at_law(laws, DESIGN, COMPONENTS, NOMINAL))
    # Errors of an item are about .02 at 400 calls; what is left of the prior is less than one call in 400.
    np.testing.assert_allclose(values.mean((0, 1)), truth, atol=0.12)
    np.testing.assert_allclose(values.mean((0, 1, 2)), truth.mean(0), atol=0.02)


def test_without_calls_the_posterior_is_the_prior() -> None:
    sampler = posterior_laws(np.zeros((2000, 3, 3), int), seed=1, prior=PRIOR, chains=1, tune=30)
    laws, kappa = next(sampler)
    expected, prior_kappa = from_prior(2000, 9)
    for found, wanted in ((laws[0, :, 0, 0], expected[:, 0, 0]), (kappa[0], prior_kappa)):
        # Two samples of 2,000: means within 6 standard errors (false failure 4e-9).
        error = (found.var() / 2000 + wanted.var() / 2000) ** 0.5
        assert abs(found.mean() - wanted.mean()) < 6 * error


def test_unbalanced_cells_and_seeds() -> None:
    counts = counts_of(from_prior(6, 2)[0], 3, 1)
    counts[0, 1] = 0
    counts[1, 2] *= 4
    one, again, other = (
        posterior_components(counts, DESIGN, COMPONENTS, NOMINAL, seed=seed, draws=8, tune=8, chains=2)[0]
        for seed in (4, 4, 5)
    )
    assert np.isfinite(one).all()
    assert (one >= 0).all()
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


# -- trees of draws ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cube() -> Any:
    generator = np.random.default_rng(3)
    rows = [
        {"q": str(i), "p": p, "r": str(r), "v": "ABC"[generator.choice(3, p=[0.6, 0.3, 0.1])]}
        for i in range(15)
        for p in "xyz"
        for r in range(4)
    ]
    return so.make_cube(rows, item="q", facets=["p"], repeat="r", verdict="v", classes=["A", "B", "C"])


def test_arviz_reads_posterior_and_bootstrap(cube: Any) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import arviz_plots
    import arviz_stats

    trees = {
        "posterior": so.posterior(cube, draws=60, tune=60, chains=2),
        "bootstrap": so.bootstrap(so.decompose(cube, draws=500)),
    }
    for name, tree in trees.items():
        summary = arviz_stats.summary(tree)
        assert any("call" in row for row in summary.index), name
        assert {"mean", "sd"} <= set(summary.columns)
        arviz_plots.plot_forest(tree, backend="matplotlib")
        import matplotlib.pyplot as plt

        plt.close("all")
    assert trees["posterior"]["posterior"].value.dims == ("chain", "draw", "component")
    assert dict(trees["posterior"]["posterior"].attrs)["mass"] == 0.5
    drawn = trees["bootstrap"]["posterior"]
    assert drawn.debiased.shape == drawn.plugin.shape == (1, 500, 3)
    np.testing.assert_array_equal(drawn.debiased[0], so.decompose(cube, draws=500).groups[0].resampled.draws[:, :3])


def test_items_can_be_kept(cube: Any) -> None:
    tree = so.posterior(cube, draws=20, tune=20, chains=2, keep_items=True)["posterior"]
    np.testing.assert_allclose(tree.item_value.mean("item"), tree.value)
    assert tree.concentration.dims == ("chain", "draw", "item")
    assert tree.item.values.tolist()[:2] == ["0", "1"]


def test_a_prior_is_stated_or_refused(cube: Any) -> None:
    tree = so.posterior(cube, prior={"mass": 1.0}, draws=4, tune=4, chains=1)
    assert tree["posterior"].attrs["mass"] == 1.0
    assert tree["posterior"].attrs["shape"] == 1.0
    with pytest.raises(InputError, match="'width'"):
        so.posterior(cube, prior={"width": 1.0})
    with pytest.raises(InputError, match=r"0\.0 is not a finite number > 0"):
        so.posterior(cube, prior={"rate": 0.0})
