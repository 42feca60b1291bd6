"""Arguments of the Python interface: a number that means nothing is refused at once, and so is the wrong object."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so

COLUMNS: dict[str, Any] = {
    "item": "item", "facets": ["prompt", "order"], "repeat": "run", "verdict": "verdict", "classes": ["A", "B"],
}  # fmt: skip


def cube_of(judges: str) -> xr.Dataset:
    random = np.random.default_rng(7)
    rows = [
        {"judge": j, "item": i, "prompt": p, "order": o, "run": r, "verdict": "AB"[int(random.random() < 0.3)]}
        for j in judges for i in range(8) for p in "pq" for o in ("AB", "BA") for r in range(4)
    ]  # fmt: skip
    return so.make_cube(rows, **COLUMNS, by="judge" if len(judges) > 1 else None)


@pytest.fixture(scope="module")
def cube() -> xr.Dataset:
    return cube_of("x")


@pytest.fixture(scope="module")
def result(cube: xr.Dataset) -> so.Decomposition:
    return so.decompose(cube, draws=100)


LAW = xr.DataArray([[0.9, 0.1], [0.5, 0.5]], dims=("prompt", "class"), coords={"class": ["A", "B"]})

Call = Callable[[xr.Dataset, so.Decomposition], Any]

WRONG: dict[str, tuple[Call, str]] = {
    "tau below 0": (lambda c, d: so.certify(d, "prompt", -1), "tau: -1 is not a finite number >= 0"),
    "tau nan": (lambda c, d: so.certify(d, "prompt", math.nan), "tau: nan is not a finite number"),
    "tau text": (lambda c, d: so.certify(d, "prompt", "x"), "tau: 'x' is not"),  # type: ignore[arg-type]
    "flag at infinity": (lambda c, d: so.decompose(c, tau=math.inf), "tau: inf is not a finite number >= 0"),
    "flag nan": (lambda c, d: so.decompose(c, tau=math.nan), "tau: nan is not a finite number >= 0"),
    "certified seed": (lambda c, d: so.certify(d, "prompt", 0.1, seed=-1), "seed: -1 is not a whole number >= 0"),
    "half an item": (lambda c, d: so.certify(d, "prompt", 0.1, n_items=8.5), "n_items: 8.5 is not"),  # type: ignore[arg-type]
    "draws beyond memory": (lambda c, d: so.decompose(c, draws=10**11), "from 100 to 1,000,000"),
    "draws in part": (lambda c, d: so.decompose(c, draws=150.5), "150.5 is not a whole number"),  # type: ignore[arg-type]
    "seed in part": (lambda c, d: so.decompose(c, seed=0.5), "seed: 0.5 is not"),  # type: ignore[arg-type]
    "shuffles": (lambda c, d: so.permutation_test(c, "prompt", draws=10**12), "from 19 to 1,000,000"),
    "detectors' shuffles": (lambda c, d: so.check_independence(c, draws=18), "18 is not a whole number from 19"),
    "draws of chains": (lambda c, d: so.posterior(c, draws=10**6, chains=2), "draws of all chains: 2000000 is not"),
    "no chain": (lambda c, d: so.posterior(c, chains=0), "chains: 0 is not a whole number >= 1"),
    "prior": (lambda c, d: so.posterior(c, prior={"mass": math.nan}), "prior mass: nan is not a finite number > 0"),
    "repeats in part": (lambda c, d: so.plugin_bias(LAW, repeats=2.5), "repeats: 2.5 is not"),  # type: ignore[arg-type]
    "no repeats": (lambda c, d: so.plugin_bias(LAW, repeats=0), "repeats: 0 is not a whole number >= 1"),
    "infinite weight": (lambda c, d: so.Facet("p", "fixed", {"a": 0.5, "b": math.inf}), "weight of 'b' is inf"),
    "weight of text": (lambda c, d: so.Facet("p", "fixed", {"a": "x"}), "weight of 'a' is x"),  # type: ignore[dict-item]
    "scores beyond numbers": (lambda c, d: so.kernel("interval", ["1e308", "-1e308"]), "NaN or infinity"),
    "middle beyond numbers": (
        lambda c, d: so.kernel("interval", ["1e308", "-1e308", "⊥"], invalid="midpoint"),
        "NaN or infinity",
    ),
    "turned range": (lambda c, d: so.confidence_sequence([0.5], (1, 0)), r"bounds: \(1, 0\) is no range"),
    "level in percent": (lambda c, d: so.decompose(c, level=95), "^level: 95 is not between 0 and 1"),
    "band of calls": (
        lambda c, d: so.decompose(c, covers="calls", interval="bca"),
        "^interval: a bca band covers resampled items, not calls; use interval='t' with covers='calls'",
    ),
    "unknown kernel": (lambda c, d: so.decompose(c, kernel="x"), "^kernel: 'x' is not a kernel"),
    "error below 0": (lambda c, d: so.budget(c, se={"prompt": -1}), r"^se\['prompt'\]: -1 is not"),
    "part of a call": (lambda c, d: so.budget(c, calls=0.5), "^calls: 0.5 is not a whole number"),  # type: ignore[arg-type]
    "sequence's alpha": (lambda c, d: so.confidence_sequence([0.5], (0, 1), alpha=2), "alpha: 2 is not between"),
    "cubes compared": (lambda c, d: so.compare(c, c), "compare: this is Dataset.*decompose the cube first"),
    "cube certified": (lambda c, d: so.certify(c, "prompt", 0.1), "certify: this is Dataset"),
    "cube resampled": (lambda c, d: so.bootstrap(c), "bootstrap: this is Dataset"),
    "cube contrasted": (lambda c, d: so.contrasts(c), "contrasts: this is Dataset"),
    "effects of a cube": (lambda c, d: so.benchmark_effects(c), "benchmark_effects: this is Dataset"),
    "check of a decomposition": (
        lambda c, d: so.check_independence(d),  # type: ignore[arg-type]
        "a cube is an xarray.Dataset, not a Decomposition",
    ),
    "reference to a decomposition": (
        lambda c, d: so.compare_reference(c, d),  # type: ignore[arg-type]
        "a cube is an xarray.Dataset, not a Decomposition",
    ),
    "law of a number": (lambda c, d: so.estimate_law(3), "a cube is an xarray.Dataset, not a int"),  # type: ignore[arg-type]
    "differences of a decomposition": (
        lambda c, d: so.studies.differences(d, "judge"),  # type: ignore[arg-type]
        "differences: this is Decomposition.*secondorder.compare",
    ),
    "cube drawn": (lambda c, d: so.plot.components(c), "plot.components: this is no decomposition"),
    "bands of nothing": (lambda c, d: so.plot.bands(d, component="z"), "no component 'z'; choose call"),
    "items of a cube": (lambda c, d: so.plot.items(c), "plot.items: this is no decomposition"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_refused_at_once(kind: str, cube: xr.Dataset, result: so.Decomposition) -> None:
    call, words = WRONG[kind]
    with pytest.raises(so.errors.InputError, match=words):
        call(cube, result)


def test_numbers_of_any_type_that_are_right(cube: xr.Dataset, result: so.Decomposition) -> None:
    assert so.plugin_bias(LAW, repeats=np.int64(3)).bias.equals(so.plugin_bias(LAW, repeats=3).bias)
    assert so.certify(result, "prompt", np.float64(0.1)).tau == 0.1


def test_a_decomposition_is_a_mapping_of_its_components(result: so.Decomposition) -> None:
    assert list(result) == ["call", "prompt", "order", "prompt:order", "total"]
    assert len(result) == 5
    assert "prompt" in result
    assert "wording" not in result
    assert {name: result[name].component for name in result} == {name: name for name in result}
    several = so.decompose(cube_of("xy"), draws=100)
    assert several
    with pytest.raises(so.errors.InputError, match="2 groups"):
        list(several)


def test_results_survive_pickling(cube: xr.Dataset, result: so.Decomposition) -> None:
    for made in (result, so.certify(result, "prompt", 0.1), so.budget(cube, calls=2000), so.contrasts(result)):
        assert str(pickle.loads(pickle.dumps(made))) == str(made)


def test_a_lone_name_stands_for_a_list_of_one(cube: xr.Dataset, result: so.Decomposition) -> None:
    one = cube.isel(order=[0])
    mine = so.Component("mine", (((), 1),))
    found = so.decompose(one, facets="prompt", components=mine)
    assert found["mine"].estimate == found["total"].estimate
    assert so.decompose(one, facets=so.Facet("prompt"))["prompt"].estimate == found["prompt"].estimate
    assert so.contrasts(result, "prompt - order").names == ("prompt - order",)
    assert so.standard_components("prompt") == so.standard_components(["prompt"])
    assert so.plugin_bias(LAW, repeats=2, facets="prompt").equals(so.plugin_bias(LAW, repeats=2))
    both = so.decompose(cube_of("xy"), draws=100)
    assert so.paired_test(both, components="prompt").components == ("prompt",)
    assert len(so.plot.items(result, components="prompt").get_yticks()) == 1


def test_signs_of_a_contrast_need_no_blanks(result: so.Decomposition) -> None:
    tight = so.contrasts(result, ["prompt-order", "order/total", "prompt:order / total"])
    wide = so.contrasts(result, ["prompt - order", "order / total", "prompt:order/total"])
    np.testing.assert_array_equal(tight.estimate, wide.estimate)
    with pytest.raises(so.errors.InputError, match="no component, difference or ratio"):
        so.contrasts(result, "prompt-")
