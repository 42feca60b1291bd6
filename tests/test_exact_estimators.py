"""Unbiasedness and closed forms as equalities: every outcome enumerated, probabilities in fractions, no tolerance.

The functions of :mod:`secondorder.core._pairs` run on fractions as they stand, so the code under test is the code that
users run; what JAX makes of it is compared sample by sample, to 1e-12, and exactly in ``test_compiled_estimators.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from secondorder._design import Design, standard_components
from secondorder.core import _estimates, _pairs
from secondorder.core._balanced import balanced_pairs
from secondorder.core._cells import cells_from_counts
from secondorder.testing import Experiment, as_floats, as_fractions, exact_design, exact_mean, standard_experiments

Values = dict[str, Any]

STANDARD = standard_experiments()
CENSUS = {name: experiment for name, experiment in STANDARD.items() if experiment.design.all_fixed}
NOMINAL = as_fractions([[0, 1], [1, 0]])


def in_fractions(experiment: Experiment, counts: Any, kind: str = "complete") -> Values:
    """The core's formulas on fractions: one object array per component."""
    counts = as_fractions(counts)
    n = counts.sum(-1)
    mean, components = counts / n[..., None], standard_components(experiment.design.names)
    if kind == "plug-in":
        values = _estimates.plugin_from(mean, experiment.design, components, experiment.kernel)
    else:
        values = _estimates.complete_pairs_from(n, mean, n * 0, experiment.design, components, experiment.kernel)
    return {component.name: value for component, value in zip(components, values, strict=True)}


def in_floats(function: Callable[..., Any], data: Any, experiment: Experiment) -> Values:
    """An estimator of the core as users run it."""
    components = standard_components(experiment.design.names)
    result = np.asarray(function(data, as_floats(experiment.design), components, experiment.kernel.astype(float)))
    return {component.name: result[..., index] for index, component in enumerate(components)}


def self_quadratic(mean: Any, kernel: Any) -> Any:
    """m' D m of every cell."""
    return ((mean @ kernel) * mean).sum(-1)


def closed_form(per_cell: Any, design: Design) -> Values:
    """Plug-in minus truth for fixed facets, from the table of the specification; `per_cell` is u/n or q/(n-1)."""

    def total(factor: Callable[[str, Fraction], Fraction]) -> Any:
        result: Any = 0
        for cell in np.ndindex(design.shape):
            factors = (factor(name, design.weights[j][cell[j]]) for j, name in enumerate(design.names))
            result = result + math.prod(factors, start=Fraction(1)) * per_cell[(..., *cell)]
        return result

    found = {"call": -total(lambda name, w: w)}
    for component in standard_components(design.names)[1:-1]:
        inside = component.name.split(":")
        found[component.name] = total(lambda name, w, inside=inside: w * (1 - w) if name in inside else w * w)
    return {**found, "total": -total(lambda name, w: w * w)}


@cache
def every_sample(name: str, kind: str = "complete") -> Values:
    """The estimates of all outcomes of a standard experiment, in fractions."""
    return in_fractions(STANDARD[name], STANDARD[name].outcomes().values, kind)


def check_unbiased(name: str, complete: Values) -> None:
    assert exact_mean(lambda _: complete, STANDARD[name].outcomes(), batched=True) == STANDARD[name].truth()


def check_adds_up(values: Values) -> None:
    assert (values["total"] == sum(value for name, value in values.items() if name != "total")).all()


def check_plugin_bias(name: str, plugin: Values) -> None:
    experiment = STANDARD[name]
    found = exact_mean(lambda _: plugin, experiment.outcomes(), batched=True)
    per_cell = self_quadratic(experiment.law, experiment.kernel) / as_fractions(experiment.calls)
    expected = closed_form(per_cell, experiment.design)
    assert {component: found[component] - value for component, value in experiment.truth().items()} == expected


def check_realised_excess(name: str, complete: Values, plugin: Values) -> None:
    experiment = STANDARD[name]
    counts = as_fractions(experiment.outcomes().values)
    n = counts.sum(-1)
    expected = closed_form(self_quadratic(counts / n[..., None], experiment.kernel) / (n - 1), experiment.design)
    for component, excess in expected.items():
        assert (plugin[component] - complete[component] == excess).all()


@pytest.mark.parametrize("name", STANDARD)
def test_complete_pairs_are_unbiased_and_add_up(name: str) -> None:
    check_unbiased(name, every_sample(name))
    check_adds_up(every_sample(name))


@pytest.mark.parametrize("name", CENSUS)
def test_plugin_is_biased_and_exceeds_by_the_closed_forms(name: str) -> None:
    check_plugin_bias(name, every_sample(name, "plug-in"))
    check_adds_up(every_sample(name, "plug-in"))
    check_realised_excess(name, every_sample(name), every_sample(name, "plug-in"))


def test_sampled_plugin_is_biased_only_where_same_cells_enter() -> None:
    name = "random and fixed facet"
    found = exact_mean(lambda _: every_sample(name, "plug-in"), STANDARD[name].outcomes(), batched=True)
    truth = STANDARD[name].truth()
    # Different prompts never share a cell: order and total are pairs of different prompts alone.
    assert {name for name in truth if found[name] == truth[name]} == {"order", "total"}
    one = Experiment(
        exact_design({"prompt": 2}, random=["prompt"]), [["1/3", "2/3"], [0, 1]], NOMINAL, 4, {"prompt": 2}
    )
    found = exact_mean(lambda counts: in_fractions(one, counts, "plug-in"), one.outcomes(), batched=True)
    assert found["prompt"] == one.truth()["prompt"] + one.truth()["call"] / 4


SIX_PROMPTS = Experiment(
    exact_design({"prompt": 6, "order": 2}), np.broadcast_to(as_fractions(["1/2"]), (6, 2, 2)), NOMINAL, 2
)


def six_prompt_counts() -> np.ndarray:
    """Every sample of six prompts in two orders, two classes, two calls, up to names of prompts and orders."""
    prompts = list(itertools.product([0, 1, 2], repeat=2))
    first = np.array(list(itertools.combinations_with_replacement(prompts, 6)))
    mirrored = [tuple(sorted(map(tuple, sample[:, ::-1]))) for sample in first]
    first = first[[tuple(map(tuple, sample)) <= other for sample, other in zip(first, mirrored, strict=True)]]
    assert len(first) == 1561
    return np.stack([first, 2 - first], -1)


def test_excess_is_five_twelfths_of_call_noise_in_fractions() -> None:
    counts = six_prompt_counts()
    for scale, sample in ((1, counts), (3, 3 * counts[::30])):
        complete, plugin = in_fractions(SIX_PROMPTS, sample), in_fractions(SIX_PROMPTS, sample, "plug-in")
        assert (2 * scale * (plugin["prompt"] - complete["prompt"]) == complete["call"] * Fraction(5, 12)).all()


def test_excess_is_five_twelfths_of_call_noise_as_compiled() -> None:
    cells = cells_from_counts(six_prompt_counts())
    functions = (_estimates.complete_pairs, _estimates.plugin, _estimates.plugin_excess)
    complete, plugin, excess = (in_floats(function, cells, SIX_PROMPTS) for function in functions)
    np.testing.assert_allclose(
        2 * (plugin["prompt"] - complete["prompt"]), complete["call"] * 5 / 12, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(2 * excess["prompt"], complete["call"] * 5 / 12, rtol=0, atol=1e-12)


def test_excess_is_five_twelfths_of_call_noise_on_the_fast_path() -> None:
    """All 3**12 samples."""
    first = np.indices((3,) * 12, dtype=np.int8).reshape(12, -1).T.reshape(-1, 6, 2)
    codes = np.stack([first < 1, first < 2], -1).astype(np.int8)
    components = standard_components(SIX_PROMPTS.design.names)
    found = balanced_pairs(codes, as_floats(SIX_PROMPTS.design), components, NOMINAL.astype(float))
    complete, plugin = map(np.asarray, found)
    np.testing.assert_allclose(2 * (plugin[1] - complete[1]), complete[0] * 5 / 12, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", STANDARD)
def test_compiled_complete_pairs_equal_fractions_in_every_sample(name: str) -> None:
    cells = cells_from_counts(STANDARD[name].outcomes().values)
    assert_close(in_floats(_estimates.complete_pairs, cells, STANDARD[name]), every_sample(name))


@pytest.mark.parametrize("name", [name for name in STANDARD if "three facets" in name])
def test_compiled_plugin_equals_fractions_in_every_sample(name: str) -> None:
    cells = cells_from_counts(STANDARD[name].outcomes().values)
    assert_close(in_floats(_estimates.plugin, cells, STANDARD[name]), every_sample(name, "plug-in"))


@pytest.mark.parametrize("name", [name for name in CENSUS if "unequal n" in name and "interval" not in name])
def test_compiled_closed_forms_equal_fractions(name: str) -> None:
    experiment = CENSUS[name]
    excess = in_floats(_estimates.plugin_excess, cells_from_counts(experiment.outcomes().values), experiment)
    complete, plugin = every_sample(name), every_sample(name, "plug-in")
    assert_close(excess, {component: plugin[component] - complete[component] for component in complete})
    per_cell = self_quadratic(experiment.law, experiment.kernel) / as_fractions(experiment.calls)
    law, calls = experiment.law.astype(float), np.asarray(experiment.calls)
    bias = in_floats(lambda law, *declared: _estimates.plugin_bias_at(law, calls, *declared), law, experiment)
    assert_close(bias, closed_form(per_cell, experiment.design))


def assert_close(found: Values, expected: Values) -> None:
    for component, values in expected.items():
        np.testing.assert_allclose(found[component], np.asarray(values, dtype=float), rtol=0, atol=1e-12)


# Planted faults ------------------------------------------------------------------------------------------------------

CORRECT = _pairs.self_corrections
FAULTS: dict[str, tuple[Any, str, Any, list[str]]] = {
    "plug-in in place of debiased": (
        _estimates,
        "self_corrections",
        lambda *args: [0 * value for value in CORRECT(*args)],
        ["one facet, interval, unequal n", "random facet, three levels, unequal n"],
    ),
    "n in place of n - 1": (
        _estimates,
        "self_corrections",
        lambda n, *args: CORRECT(n + 1, *args),
        ["one facet, interval, unequal n", "random facet"],
    ),
    "the largest n for every cell": (
        _estimates,
        "self_corrections",
        lambda n, *args: CORRECT(n * 0 + n.max(), *args),
        ["one facet, interval, unequal n"],
    ),
    "weight in place of its square": (
        _pairs,
        "correction_weights",
        lambda design, facet, shared: design.weights[facet],
        ["two facets, unequal weights and n, points"],
    ),
    "equal weights in place of the declared ones": (
        _pairs,
        "_weighted_mean",
        lambda values, weights, axis: values.sum(axis) / Fraction(values.shape[axis]),
        ["one facet, unequal weights, nominal", "random and fixed facet"],
    ),
    "random levels taken as a census": (
        _estimates,
        "sampled_levels",
        lambda values, design: values,
        ["random facet", "random facet from a list"],
    ),
    "a list taken as a policy": (
        _estimates,
        "sampled_levels",
        lambda values, design: _pairs.sampled_levels(
            values, Design(design.names, design.weights, tuple(math.inf if p else None for p in design.populations))
        ),
        ["random facet from a list"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_fail(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, wrong, names = FAULTS[fault]
    monkeypatch.setattr(module, function, wrong)
    for name in names:
        complete = in_fractions(STANDARD[name], STANDARD[name].outcomes().values)
        with pytest.raises(AssertionError):
            check_unbiased(name, complete)
        if name in CENSUS and function == "self_corrections":
            with pytest.raises(AssertionError):
                check_realised_excess(name, complete, every_sample(name, "plug-in"))


def test_planted_fault_of_the_plugin_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "one facet, unequal weights, nominal"
    monkeypatch.setattr(_pairs, "_weighted_mean", FAULTS["equal weights in place of the declared ones"][2])
    with pytest.raises(AssertionError):
        check_plugin_bias(name, in_fractions(STANDARD[name], STANDARD[name].outcomes().values, "plug-in"))
