"""The bands that studies run thousands of times are those of the core, to rounding."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from secondorder import core
from secondorder.simulate import Mechanism, band_methods, laws
from secondorder.simulate._bands import SETS, _resamples, _weights
from secondorder.simulate._block import Simulator
from secondorder.simulate._prepared import prepare


@pytest.mark.parametrize("items", [30, {"x": 20, "y": 10}], ids=["plain", "strata"])
def test_bands_of_a_study_are_those_of_the_core(items: object) -> None:
    law = laws.dirichlet([0.5, 0.3, 0.2], 4, {"prompt": 3, "order": 2}, over=["prompt", "order"], items=40, seed=1)
    law = law.assign_coords(stratum=("item", ["x"] * 25 + ["y"] * 15))
    prepared = prepare(Mechanism(law, repeats=3, items=items))
    simulator = Simulator(prepared, ("debiased", *band_methods()), seed=1, stream="bands", level=0.95)
    with core.double_precision():
        draw = simulator.draw(0)
        found = simulator.estimates(draw)
        cells = core.cells_from_counts(draw.counts)
        values = np.asarray(core.complete_pairs(cells, draw.design, draw.components, draw.kernel))
    sizes = np.bincount(np.asarray(draw.strata))
    weights = _weights(tuple(sizes.tolist()), zlib.crc32(np.asarray(draw.counts_last[0][..., 0]).tobytes()) % SETS)
    assert (weights.sum(1) == sum(sizes)).all()
    parts = np.split(np.arange(30), np.cumsum(sizes)[:-1])
    for replicate in (0, 7):
        errors = core.item_errors(values[replicate], draw.strata)
        influence = core.item_influence(values[replicate], draw.strata)
        draws = weights @ values[replicate] / 30
        # The item SE of each resample, stratum by stratum, from its definition.
        variance = np.zeros(draws.shape)
        for part in parts:
            drawn = [np.repeat(values[replicate][part], row.astype(int), axis=0) for row in weights[:, part]]
            variance += (len(part) / 30) ** 2 * np.stack([d.var(0, ddof=1) for d in drawn]) / len(part)
        bands = [
            core.t_interval(errors),
            core.percentile_interval(errors, draws),
            core.bca_interval(errors, draws, influence),
            core.studentised_interval(errors, draws, np.sqrt(variance)),
        ]
        for method, band in enumerate(bands):
            np.testing.assert_allclose(np.asarray(found.lower)[method, :, replicate], band.lower, atol=1e-12)
            np.testing.assert_allclose(np.asarray(found.upper)[method, :, replicate], band.upper, atol=1e-12)


def test_a_judge_without_spread_has_no_band() -> None:
    law = laws.deterministic("a", {"prompt": 3}, ["a", "b"])
    simulator = Simulator(
        prepare(Mechanism(law, repeats=2, items=10)), ("debiased", *band_methods()), seed=1, stream="flat", level=0.95
    )
    with core.double_precision():
        found = simulator.estimates(simulator.draw(0))
        _resamples.cache_clear()
    assert np.isnan(np.asarray(found.lower)).all()
    assert (np.asarray(found.value) == 0).all()
