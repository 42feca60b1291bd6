"""Laws with known truth: every maker's components against the definition, targets hit exactly, faults refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder import Facet
from secondorder.errors import CubeError, DesignError, SpecError
from secondorder.simulate import Dependence, Mechanism, laws
from secondorder.simulate._prepared import prepare

FACETS = {"prompt": 6, "order": ["AB", "BA"]}
BASE = [0.4, 0.3, 0.2, 0.1]


def truth(law: xr.DataArray, kernel: str = "nominal") -> dict[str, float]:
    """By the labelled function that users call."""
    found = so.decompose_law(law, kernel=kernel)
    return dict(zip(found.component.values.tolist(), found.value.values.tolist(), strict=True))


def test_an_exchangeable_law_has_call_noise_alone() -> None:
    found = truth(laws.exchangeable(BASE, FACETS))
    assert found["call"] == pytest.approx(0.7, abs=1e-15)
    assert [found[name] for name in ("prompt", "order", "prompt:order")] == pytest.approx([0, 0, 0], abs=1e-15)


@pytest.mark.parametrize("kernel", ["nominal", "ordinal"])
def test_effects_have_exactly_the_wanted_components(kernel: str) -> None:
    wanted = {"prompt": 0.012, "order": 0.004, "prompt:order": 0.003}
    law = laws.effects(BASE, FACETS, wanted, kernel=kernel, directions={"order": [0, 1, -1, 0]})
    found = truth(law, kernel)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-15)


def test_the_papers_nonzero_law() -> None:
    for K, t in ((5, 0.17321), (6, 0.17928)):
        law = laws.effects(BASE, {"prompt": K, "order": 2}, {"prompt": 0.03})
        assert law.values[0, -1, 0, 0] - 0.4 == pytest.approx(t, abs=5e-6)
        assert truth(law)["prompt"] == pytest.approx(0.03, abs=1e-15)


def test_effects_with_unequal_weights_stay_apart() -> None:
    weights = {"prompt": [0.5, 0.3, 0.2], "order": [0.9, 0.1]}
    law = laws.effects([0.5, 0.5], {"prompt": 3, "order": 2}, {"prompt": 0.02, "prompt:order": 0.005}, weights=weights)
    facets = [Facet(n, weights=dict(zip(law[n].values.tolist(), w, strict=True))) for n, w in weights.items()]
    found = so.decompose_law(law, facets=facets).value
    assert found.values[1:4] == pytest.approx([0.02, 0.0, 0.005], abs=1e-15)
    assert laws.components(law, weights=weights)["prompt"] == pytest.approx(0.02, abs=1e-15)


def test_dial_scales_what_it_names_and_nothing_else() -> None:
    law = laws.dirichlet(BASE, 40, FACETS, over=["prompt", "order"], items=7, seed=1)
    before = truth(law)
    dialled = truth(laws.dial(law, {"prompt": 0.004, "order": 0.0}))
    assert dialled["prompt"] == pytest.approx(0.004, abs=1e-15)
    assert dialled["order"] == pytest.approx(0.0, abs=1e-15)
    assert dialled["prompt:order"] == pytest.approx(before["prompt:order"], abs=1e-15)
    # Mean laws stay where they are, and so does the total: call noise takes over what the effects lose.
    assert dialled["total"] == pytest.approx(before["total"], abs=1e-15)
    assert before["total"] - before["call"] > dialled["total"] - dialled["call"] + 0.001


def test_the_values_that_a_dial_names_are_possible() -> None:
    law = laws.effects(BASE, FACETS, {"prompt": 0.03, "order": 0.01})
    with pytest.raises(DesignError, match="go no further than prompt=") as refused:
        laws.dial(law, {"prompt": 0.5, "order": 0.001})
    named = str(refused.value).split("than ")[1].split(", ")
    wanted = {name: float(value) for name, value in (part.split("=") for part in named)}
    found = laws.components(laws.dial(law, wanted))
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-12)
    assert found["prompt"] > 0.05
    # Hardly any room is left above.
    with pytest.raises(DesignError):
        laws.dial(law, {"prompt": 1.02 * wanted["prompt"], "order": wanted["order"]})


@pytest.mark.parametrize("weights", [{"prompt": [0.5, 0.2, 0.1]}, {"prompt": [0.5, 0.5]}, {"judge": [0.5, 0.5]}])
def test_level_weights_are_checked_wherever_they_are_given(weights: dict[str, list[float]]) -> None:
    law = laws.effects([0.5, 0.5], {"prompt": 3}, {"prompt": 0.02})
    with pytest.raises(DesignError, match="weights"):
        laws.components(law, weights=weights)
    with pytest.raises(DesignError, match="weights"):
        laws.dial(law, {"prompt": 0.01}, weights=weights)
    with pytest.raises(DesignError, match="weights"):
        laws.effects([0.5, 0.5], {"prompt": 3}, {"prompt": 0.02}, weights=weights)


def test_a_law_fitted_from_a_cube_is_a_law_like_any_other() -> None:
    rng = np.random.default_rng(1)
    columns = ("item", "prompt", "order", "run", "verdict")
    rows = [
        dict(zip(columns, (f"q{i}", f"p{k}", o, str(r), "AB"[int(rng.random() < 0.2 + 0.1 * k)]), strict=True))
        for i, k, o, r in product(range(3), range(3), ("AB", "BA"), range(8))
    ]
    cube = so.make_cube(
        rows, item="item", facets=["prompt", "order"], repeat="run", verdict="verdict", classes=["A", "B"]
    )
    law = laws.dial(so.estimate_law(cube), {"prompt": 0.01})
    assert truth(law)["prompt"] == pytest.approx(0.01, abs=1e-15)
    ready = prepare(Mechanism(law, repeats=2))
    assert dict(zip(ready.names, ready.truth, strict=True))["prompt"] == pytest.approx(0.01, abs=1e-15)


def test_dirichlet_lists_come_close_to_the_policy_behind_them() -> None:
    # (1 - sum mean^2) / (1 + concentration) over endless draws; 4000 of them see it within 5 %.
    law = laws.dirichlet([0.5, 0.3, 0.2], 9, {"prompt": 4000}, over=["prompt"], seed=2)
    assert laws.components(law)["prompt"] == pytest.approx(0.62 / 10, rel=0.05)


def test_scores_shift_with_their_location() -> None:
    law = laws.scores([1, 2, 3, 4, 5], FACETS, location=[2, 4], spread=0.5, shifts={"prompt": [-1, 0, 0, 0, 0, 1]})
    mean = (law * np.arange(1, 6)).sum("class")
    assert (mean.sel(item="1", prompt="1") < mean.sel(item="1", prompt="6")).all()
    assert float(mean.mean("prompt").sel(item="1", order="AB")) == pytest.approx(2, abs=0.1)
    assert law["class"].values.tolist() == ["1", "2", "3", "4", "5"]
    assert truth(law, "interval")["prompt"] > 0


def test_biased_lazy_and_flipping_judges() -> None:
    biased = laws.position_bias([0.5, 0.3, 0.2], FACETS, 0.2)
    assert truth(biased)["order"] == pytest.approx(0.02, abs=1e-15)
    assert truth(laws.lazy(biased, 0.5, "c"))["order"] == pytest.approx(0.005, abs=1e-15)
    assert truth(laws.rare_flips(0.02, FACETS))["call"] == pytest.approx(2 * 0.02 * 0.98, abs=1e-15)
    certain = laws.deterministic([["a"], ["a"], ["b"], ["a"], ["a"], ["a"]], FACETS, ["a", "b"])
    assert truth(certain)["prompt"] == pytest.approx(2 * 5 / 36, abs=1e-15)
    assert truth(certain)["call"] == 0


def test_invalid_verdicts_are_the_last_class() -> None:
    rates = xr.DataArray([0.0, 0.1, 0.0, 0.0, 0.0, 0.5], dims="prompt")
    law = laws.with_invalid(laws.exchangeable([0.6, 0.4], FACETS), rates)
    assert law["class"].values.tolist() == ["a", "b", "⊥"]
    assert law.sel({"class": "⊥"}).values[0, :, 0] == pytest.approx(rates.values)
    assert truth(law)["prompt"] > 0


def test_populations_weigh_their_parts() -> None:
    noisy = laws.dirichlet([0.5, 0.5], 3, FACETS, over=["prompt"], items=4, seed=3)
    mixed = laws.population({"steady": laws.rare_flips(0.0, FACETS), "noisy": noisy}, [0.85, 0.15])
    assert mixed["weight"].values == pytest.approx([0.85, *[0.0375] * 4])
    assert laws.components(mixed)["prompt"] == pytest.approx(0.15 * truth(noisy)["prompt"], abs=1e-15)
    sparse = laws.sparse([0.4, 0.4, 0.2], FACETS, {"order": 0.05}, 0.05)
    assert laws.components(sparse)["order"] == pytest.approx(0.0025, abs=1e-15)


def test_the_truth_of_sampled_levels_is_that_of_their_list() -> None:
    law = laws.dirichlet([0.5, 0.3, 0.2], 5, {"prompt": 9, "order": 2}, over=["prompt", "order"], items=3, seed=4)
    census = truth(law)
    for population in (None, 9):
        facet = Facet("prompt", kind="random", population=population)
        ready = prepare(Mechanism(law, repeats=2, facets=[facet], levels={"prompt": 4}))
        assert dict(zip(ready.names, ready.truth, strict=True)) == pytest.approx(census, abs=1e-14)
        assert ready.design.shape == (4, 2)
    # What the estimator is told agrees with what the labelled function says of a whole list.
    listed = so.decompose_law(law, facets=[Facet("prompt", kind="random", population=9), "order"]).value
    assert listed.values == pytest.approx(list(census.values()), abs=1e-14)


def test_drift_is_true_on_average_over_time() -> None:
    start, end = laws.exchangeable([0.9, 0.1], {"prompt": 2}), laws.exchangeable([0.5, 0.5], {"prompt": 2})
    ready = prepare(Mechanism(start, repeats=4, drift_to=end))
    assert ready.truth[0] == pytest.approx(2 * 0.7 * 0.3)
    assert np.isnan(ready.plugin_bias).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: laws.exchangeable([0.5, 0.4], {"prompt": 2}), "sum to 0.9"),
        (lambda: laws.exchangeable([1.5, -0.5], {"prompt": 2}), "probability -0.5"),
        (lambda: laws.effects(BASE, FACETS, {"prompt": 0.5}), "ask for at most"),
        (lambda: laws.effects(BASE, FACETS, {"wording": 0.01}), "facets: prompt, order"),
        (lambda: laws.effects(BASE, FACETS, {"prompt": -0.01}), "at least 0"),
        (lambda: laws.effects(BASE, FACETS, {"prompt": 0.01}, directions={"prompt": [0, 0, 0, 0]}), "no effect"),
        (lambda: laws.dial(laws.exchangeable(BASE, FACETS), {"prompt": 0.01}), "no prompt effect to scale"),
        (lambda: laws.dial(laws.exchangeable(BASE, FACETS), {"call": 0.01}), "components: prompt"),
        (lambda: laws.deterministic("z", FACETS, ["a", "b"]), "classes: a, b"),
        (lambda: laws.position_bias(BASE, {"prompt": 2}, 0.1), "has 0 levels"),
        (lambda: laws.mix(laws.exchangeable(BASE, FACETS), laws.exchangeable(BASE, FACETS), 1.5), "probability"),
        (lambda: laws.population({"a": laws.exchangeable(BASE, FACETS)}, [0.5, 0.5]), "2 shares for 1"),
        (lambda: laws.population({"a": laws.exchangeable(BASE, FACETS)}, [0.5]), "sum to 0.5"),
        (lambda: laws.exchangeable(BASE, FACETS, classes=["a"]), "1 class labels for 4"),
        (lambda: laws.dirichlet(BASE, 3, FACETS, over=["judge"], seed=1), "facets: prompt, order"),
    ],
)
def test_impossible_laws_are_refused(make: object, says: str) -> None:
    with pytest.raises((DesignError, CubeError), match=says):
        make()  # type: ignore[operator]


LAW = laws.exchangeable(BASE, FACETS)
RANDOM = Facet("prompt", kind="random")
NINE = Facet("prompt", kind="random", population=9)


@pytest.mark.parametrize(
    ("mechanism", "says"),
    [
        (Mechanism(LAW, repeats=0), "at least 1"),
        (Mechanism(LAW, repeats=[2, 2]), r"shape \(6, 2\)"),
        (Mechanism(LAW, repeats=2, levels={"prompt": 3}), "fixed facet"),
        (Mechanism(LAW, repeats=2, facets=[RANDOM]), "how many levels"),
        (Mechanism(LAW, repeats=2, facets=["judge"]), "facets: prompt, order"),
        (Mechanism(LAW, repeats=2, facets=[NINE], levels={"prompt": 3}), "lists 6"),
        (Mechanism(laws.sparse(BASE, FACETS, {"order": 0.01}, 0.1), repeats=2), "say items=N"),
        (Mechanism(LAW, repeats=2, items={"hard": 3}), "coordinate 'stratum'"),
        (Mechanism(LAW, repeats=2, drift_to=laws.exchangeable(BASE, {"prompt": 2})), "another shape"),
    ],
)  # fmt: skip
def test_contradictory_mechanisms_are_refused(mechanism: Mechanism, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        prepare(mechanism)


def test_dependence_names_its_kinds() -> None:
    with pytest.raises(SpecError, match="seed, seed-all, cache or duplicate"):
        Dependence("drift")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="probability"):
        Dependence("seed", 2.0)
