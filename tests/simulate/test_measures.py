"""Measures of studies against plain NumPy, the package's own functions, and known biases."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import secondorder as so
from secondorder.core._precision import double_precision
from secondorder.errors import SpecError
from secondorder.simulate import Dependence, Draw, Estimate, Mechanism, Method, Study, laws, run_study
from secondorder.simulate._block import Simulator, draws_calls
from secondorder.simulate._measures import SUMS, block_sums, measures_from
from secondorder.simulate._prepared import prepare
from secondorder.testing import assert_mean

from .conftest import FACETS, mechanism


def test_measures_are_those_of_plain_numpy() -> None:
    ready = prepare(Mechanism(laws.effects([0.6, 0.4], FACETS, {"prompt": 0.02}), repeats=2, items=None))
    simulator = Simulator(ready, ("debiased", "plugin"), seed=1, stream="x", level=0.95)
    draw = simulator.draw(0)
    value = np.asarray(simulator.estimates(draw).value)
    found = measures_from(np.asarray(simulator.sums(0, 1000)), ready.truth)
    kept, truth = value[..., :1000], ready.truth[:, None]
    error = kept - truth
    n = 1000
    assert found["bias"].value == pytest.approx(error.mean(-1))
    assert found["bias"].mcse == pytest.approx(kept.std(-1, ddof=1) / n**0.5)
    assert found["empirical_se"].value == pytest.approx(kept.std(-1, ddof=1))
    assert found["mse"].value == pytest.approx((error**2).mean(-1))
    assert found["mse"].mcse == pytest.approx((error**2).std(-1, ddof=1) / n**0.5)
    assert found["mse_ratio"].value[1] == pytest.approx((error**2).mean(-1)[1] / (error**2).mean(-1)[0])
    assert found["negative"].value == pytest.approx((kept < -1e-10).mean(-1))
    # The estimates are those that users get, from the counts that a method sees.
    cells = so.core.cells_from_counts(np.asarray(draw.counts)[:, 0])
    expected = so.core.complete_pairs(cells, ready.design, ready.components, ready.kernel)
    assert np.abs(value[0].T - np.asarray(expected)).max() < 1e-13
    expected = so.core.plugin(cells, ready.design, ready.components, ready.kernel)
    assert np.abs(value[1].T - np.asarray(expected)).max() < 1e-13


def test_sums_are_listed_once() -> None:
    assert len(set(SUMS)) == len(SUMS)


def test_monte_carlo_errors_are_the_spread_of_measures_between_runs() -> None:
    # 300 runs of 200 replicates: their spread has a relative error of 4 %; a factor of .75 to 1.3 is seven of them.
    rng = np.random.default_rng(1)
    truth = np.array([0.3])
    one = []
    for _ in range(300):
        x = rng.exponential(0.5, 200)
        values = np.stack([x, 0.5 * x + rng.normal(0, 0.4, 200)])[:, None, :]
        reject = (values > 0.8).astype(float)
        with double_precision():
            arrays = map(jnp.asarray, (values, values - 0.5, values + 0.1, reject, truth, 200))
            one.append(measures_from(np.asarray(block_sums(*arrays)), truth))
    for name in ("bias", "empirical_se", "mse", "mse_ratio", "negative", "coverage", "missed_low", "power"):
        spread = np.std([found[name].value[1, 0] for found in one], ddof=1)
        stated = np.mean([found[name].mcse[1, 0] for found in one])
        assert 0.75 < stated / spread < 1.3, name


def test_t_limits_are_those_of_the_package() -> None:
    law = laws.dirichlet([0.5, 0.5], 3, FACETS, over=["prompt"], items=6, seed=1).assign_coords(
        stratum=("item", ["a"] * 4 + ["b"] * 2)
    )
    ready = prepare(Mechanism(law, repeats=2, items={"a": 5, "b": 3}))
    assert ready.sampling.items == ((5, 0, 4), (3, 4, 2))
    simulator = Simulator(ready, ("debiased",), seed=1, stream="x", level=0.9)
    draw = simulator.draw(0)
    answer = simulator.estimates(draw)
    for replicate in range(3):
        cells = so.core.cells_from_counts(np.asarray(draw.counts)[replicate])
        items = so.core.complete_pairs(cells, ready.design, ready.components, ready.kernel)
        band = so.core.t_interval(so.core.item_errors(np.asarray(items), ready.strata), 0.9)
        found = np.stack([answer.lower[0, :, replicate], answer.upper[0, :, replicate]])
        assert found == pytest.approx(np.stack([band.lower, band.upper]), abs=1e-12, nan_ok=True)


def own(draw: Draw) -> Estimate:
    """First component from the counts, undefined where the first cell is split."""
    counts = np.asarray(draw.counts)
    agreement = (counts * (counts - 1)).sum(-1) / 2
    value = np.repeat(1 - agreement.mean((1, 2, 3))[:, None], len(draw.names), axis=1)
    value[counts[:, 0, 0, 0, 0] == 1] = np.nan
    return Estimate(value, value - 0.1, value + 0.1)


def test_an_event_without_a_value_has_not_failed() -> None:
    def event(draw: Draw) -> Estimate:
        nothing = np.full((len(np.asarray(draw.counts)), 1), np.nan)
        return Estimate(nothing, reject=np.ones_like(nothing))

    study = Study(
        "event", "", {"R": (2,)}, mechanism, replicates=100, seed=1, methods=(Method("mine", event),),
        estimands=("call",),
    )  # fmt: skip
    assert "failed replicates: 0" in str(run_study(study))


def test_own_methods_run_and_their_failures_are_counted() -> None:
    study = Study(
        "own", "", {"R": (2,)}, mechanism, replicates=3000, seed=1, methods=(Method("mine", own), "debiased"),
        estimands=("call",),
    )  # fmt: skip
    whole = run_study(study)
    result = whole.data.isel(R=0, estimand=0)
    mine = result.sel(estimator="mine")
    # The first cell is split in 48 % of the replicates; sees 5 points.
    assert abs(float(mine["failure"]) - 0.48) < 5 * float(mine["failure_mcse"])
    assert float(mine["failed"]) == round(float(mine["failure"]) * 3000)
    assert f"failed replicates: {int(mine['failed'])}" in str(whole)
    assert float(mine["interval_failure"]) == float(mine["failure"])
    assert np.isnan(mine["size"])
    assert 0 < float(mine["power"]) <= 1
    # Ratios are taken to the first method, whatever its kind, over replicates in which both have a value.
    assert float(mine["mse_ratio"]) == 1
    assert float(result["mse_ratio"].sel(estimator="debiased")) > 0
    wrong = Method("wrong", lambda draw: np.zeros((3, 1)))
    with pytest.raises(SpecError, match="method wrong"):
        run_study(Study("w", "", {"R": (2,)}, mechanism, replicates=10, seed=1, methods=(wrong,), estimands=("call",)))


def test_dependence_biases_complete_pairs_and_spares_across_repeats() -> None:
    def coupled(kind: str) -> Mechanism:
        dependence = None if kind == "none" else Dependence(kind)  # type: ignore[arg-type]
        return Mechanism(laws.exchangeable([0.5, 0.5], {"prompt": 2}), repeats=2, dependence=dependence)

    study = Study(
        "traps", "", {"kind": ("none", "seed", "cache")}, coupled, replicates=20_000, seed=3,
        methods=("debiased", "across-repeats", "panel"), estimands=("call", "prompt"),
    )  # fmt: skip
    data = run_study(study).data
    bias, mcse = data["bias"].sel(estimand="prompt"), data["bias_mcse"].sel(estimand="prompt")
    assert float(bias.sel(kind="seed", estimator="debiased")) == pytest.approx(-0.125, abs=0.01)
    # One seed, one law: both prompts always say the same, and pairs of other repeats say that they do.
    assert float(bias.sel(kind="seed", estimator="across-repeats")) == 0
    # A cached repeat is no second call: call noise vanishes, and prompts seem to differ by all of it.
    assert float(data["bias"].sel(kind="cache", estimator="debiased", estimand="call")) == pytest.approx(-0.5)
    assert float(bias.sel(kind="cache", estimator="debiased")) == pytest.approx(0.25, abs=0.01)
    for name in ("debiased", "across-repeats", "panel"):
        assert abs(bias.sel(kind="none", estimator=name)) < 5 * mcse.sel(kind="none", estimator=name)


def test_large_tables_and_large_designs_take_other_routes_to_the_same_truth() -> None:
    wide = prepare(Mechanism(laws.exchangeable(np.full(20, 1 / 20), {"prompt": 40}), repeats=6))
    assert draws_calls(wide, ("debiased",))
    simulator = Simulator(wide, ("debiased", "plugin"), seed=1, stream="x", level=0.95)
    value = np.asarray(simulator.estimates(simulator.draw(0)).value)
    # Sees .002 in the call component.
    assert_mean(value[0, :, :].T, wide.truth, must_detect=0.01)
    assert_mean(value[1, :, :].T, wide.truth + wide.plugin_bias, must_detect=0.01)
