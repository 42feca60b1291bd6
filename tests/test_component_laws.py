"""Algebraic laws that every decomposition obeys, on drawn designs, kernels, laws and verdicts; exact, in fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from secondorder._design import Component, Design, standard_components
from secondorder.core import _estimates
from secondorder.testing import as_fractions, exact_design, oracle_estimate, oracle_truth
from secondorder.testing import strategies as so

Values = dict[str, Any]

quick = settings(max_examples=40, deadline=None, database=None)
fixed_cases, random_cases, any_cases = so.cases(random=False), so.cases(random=True), so.cases()
gappy_cases = so.cases(missing=True)


def named(design: Design, values: list[Any]) -> Values:
    return {component.name: value for component, value in zip(standard_components(design.names), values, strict=True)}


def truth(law: Any, design: Design, kernel: Any) -> Values:
    return named(design, _estimates.plugin_from(law, design, standard_components(design.names), kernel))


def estimate(codes: Any, design: Design, kernel: Any) -> Values:
    counts = as_fractions((codes[..., None] == np.arange(len(kernel))).sum(-2))
    n = counts.sum(-1)
    components = standard_components(design.names)
    return named(design, _estimates.complete_pairs_from(n, counts / n[..., None], n * 0, design, components, kernel))


def subsets(names: Any) -> list[tuple[str, ...]]:
    return [chosen for size in range(len(names) + 1) for chosen in itertools.combinations(names, size)]


@quick
@given(any_cases)
def test_truth_equals_the_definition(case: so.Case) -> None:
    assert truth(case.law, case.scenario.design, case.kernel) == oracle_truth(
        case.law, case.scenario.design, case.kernel
    )


@quick
@given(gappy_cases)
def test_estimate_equals_the_definition(case: so.Case) -> None:
    design = case.scenario.design
    assert estimate(case.verdicts, design, case.kernel) == oracle_estimate(case.verdicts, design, case.kernel)


@quick
@given(gappy_cases)
def test_components_add_up_to_the_total(case: so.Case) -> None:
    design, kernel = case.scenario.design, case.kernel
    for values in (truth(case.law, design, kernel), estimate(case.verdicts, design, kernel)):
        assert values["total"] == sum(value for name, value in values.items() if name != "total")


@quick
@given(fixed_cases)
def test_components_of_a_law_are_not_negative(case: so.Case) -> None:
    assert min(truth(case.law, case.scenario.design, case.kernel).values()) >= 0


@quick
@given(gappy_cases)
def test_call_and_total_stay_in_the_range_of_the_kernel(case: so.Case) -> None:
    values = estimate(case.verdicts, case.scenario.design.census(), case.kernel)
    assert all(0 <= values[name] <= case.kernel.max() for name in ("call", "total"))


@quick
@given(fixed_cases, st.data())
def test_effects_are_convex_and_noise_is_concave_in_the_law(case: so.Case, data: st.DataObject) -> None:
    design, kernel = case.scenario.design, case.kernel
    other = data.draw(so.laws(design.shape, case.scenario.n_classes))
    share = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1, 5)]))
    mixed = truth(share * case.law + (1 - share) * other, design, kernel)
    first, second = truth(case.law, design, kernel), truth(other, design, kernel)
    for name, value in mixed.items():
        between = share * first[name] + (1 - share) * second[name]
        assert value >= between if name in ("call", "total") else value <= between


@quick
@given(any_cases, st.data())
def test_components_are_linear_in_the_kernel(case: so.Case, data: st.DataObject) -> None:
    design = case.scenario.design
    other, factor = data.draw(so.kernels(case.scenario.n_classes)), Fraction(3, 7)
    both = truth(case.law, design, case.kernel + factor * other)
    first, second = truth(case.law, design, case.kernel), truth(case.law, design, other)
    assert both == {name: first[name] + factor * second[name] for name in first}


@quick
@given(gappy_cases, st.data())
def test_names_of_levels_and_classes_do_not_matter(case: so.Case, data: st.DataObject) -> None:
    design, classes = case.scenario.design, case.scenario.n_classes
    orders = [data.draw(st.permutations(range(size))) for size in design.shape]
    weights = tuple(tuple(w[k] for k in order) for w, order in zip(design.weights, orders, strict=True))
    renamed = Design(design.names, weights, design.populations)
    new_code = np.array(data.draw(st.permutations(range(classes))))
    old_code = np.argsort(new_code)
    kernel = case.kernel[np.ix_(old_code, old_code)]
    codes = np.where(case.verdicts >= 0, new_code[case.verdicts], -1)[np.ix_(*orders)]
    law = case.law[..., old_code][np.ix_(*orders)]
    assert estimate(codes, renamed, kernel) == estimate(case.verdicts, design, case.kernel)
    assert truth(law, renamed, kernel) == truth(case.law, design, case.kernel)


@quick
@given(gappy_cases)
def test_order_of_facets_does_not_matter(case: so.Case) -> None:
    design = case.scenario.design
    turned = Design(design.names[::-1], design.weights[::-1], design.populations[::-1])
    axes = reversed(range(len(design.names)))
    found = estimate(case.verdicts.transpose(*axes, -1), turned, case.kernel)
    for name, value in estimate(case.verdicts, design, case.kernel).items():
        assert found[":".join(name.split(":")[::-1])] == value


@quick
@given(gappy_cases, st.data())
def test_order_of_repeats_does_not_matter(case: so.Case, data: st.DataObject) -> None:
    """Complete pairs: within every cell. Across repeats: the same new order for all cells."""
    design, repeats = case.scenario.design, case.scenario.repeats
    shuffled = case.verdicts.copy()
    for cell in np.ndindex(design.shape):
        shuffled[cell] = shuffled[cell][data.draw(st.permutations(range(repeats)))]
    assert estimate(shuffled, design, case.kernel) == estimate(case.verdicts, design, case.kernel)
    turned = case.verdicts[..., data.draw(st.permutations(range(repeats)))]
    declared = (design, case.kernel)
    assert oracle_estimate(turned, *declared, pairs="across-repeats") == oracle_estimate(
        case.verdicts, *declared, pairs="across-repeats"
    )


@quick
@given(any_cases, st.data())
def test_duplicate_and_empty_classes_change_nothing(case: so.Case, data: st.DataObject) -> None:
    """A class split into two at distance zero, and a class that never occurs."""
    design, classes = case.scenario.design, case.scenario.n_classes
    split = data.draw(st.integers(0, classes - 1))
    share = data.draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1)]))
    origin = [*range(classes), split]
    law = case.law[..., origin]
    law[..., split], law[..., -1] = law[..., split] * share, law[..., -1] * (1 - share)
    assert truth(law, design, case.kernel[np.ix_(origin, origin)]) == truth(case.law, design, case.kernel)


@quick
@given(any_cases)
def test_a_facet_with_one_level_changes_nothing(case: so.Case) -> None:
    design = case.scenario.design
    wider = Design(("scale", *design.names), ((Fraction(1),), *design.weights), (None, *design.populations))
    found = truth(case.law[None], wider, case.kernel)
    for name, value in truth(case.law, design, case.kernel).items():
        assert found.pop(name) == value
    assert set(found.values()) == {Fraction(0)}


@quick
@given(fixed_cases, st.data())
def test_splitting_a_level_of_a_census_changes_nothing(case: so.Case, data: st.DataObject) -> None:
    """The same wording listed twice with the weight shared out."""
    design = case.scenario.design
    facet = data.draw(st.integers(0, len(design.names) - 1))
    level = data.draw(st.integers(0, design.shape[facet] - 1))
    share = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1, 6)]))
    weights = list(design.weights[facet])
    weights[level : level + 1] = [weights[level] * share, weights[level] * (1 - share)]
    longer = Design(
        design.names, (*design.weights[:facet], tuple(weights), *design.weights[facet + 1 :]), design.populations
    )
    law = np.insert(case.law, level, np.take(case.law, level, facet), facet)
    assert truth(law, longer, case.kernel) == truth(case.law, design, case.kernel)


@quick
@given(so.scenarios(random=False, facets=2), st.data())
def test_averaging_a_facet_out_keeps_the_components_without_it(scenario: so.Scenario, data: st.DataObject) -> None:
    law, kernel = (
        data.draw(so.laws(scenario.design.shape, scenario.n_classes)),
        data.draw(so.kernels(scenario.n_classes)),
    )
    name, order = scenario.design.names
    weights = as_fractions(scenario.design.weights[1])
    left = exact_design({name: scenario.design.weights[0]})
    found, whole = truth((law * weights[:, None]).sum(1), left, kernel), truth(law, scenario.design, kernel)
    assert (found[name], found["total"]) == (whole[name], whole["total"])
    # What was noise between orders is now noise within the prompt.
    assert found["call"] == whole["call"] + whole[order] + whole[f"{name}:{order}"]


@quick
@given(random_cases)
def test_random_facets_map_components_as_specified(case: so.Case) -> None:
    """``U_T`` of policies as a signed sum of the census's, where levels are independent draws."""
    design = case.scenario.design
    kinds = zip(design.names, design.shape, design.populations, strict=True)
    sizes = {name: size for name, size, kind in kinds if kind}
    free = Design(design.names, design.weights, tuple(math.inf if kind else None for kind in design.populations))
    census, found = truth(case.law, design.census(), case.kernel), truth(case.law, free, case.kernel)
    for chosen in subsets(design.names)[1:]:
        factor = math.prod((Fraction(sizes[j], sizes[j] - 1) for j in chosen if j in sizes), start=Fraction(1))
        total = Fraction(0)
        for added in subsets([j for j in sizes if j not in chosen]):
            sign = math.prod((Fraction(-1, sizes[j] - 1) for j in added), start=Fraction(1))
            total += sign * census[":".join(j for j in design.names if j in chosen or j in added)]
        assert found[":".join(chosen)] == factor * total


@quick
@given(random_cases)
def test_a_list_drawn_whole_is_a_census(case: so.Case) -> None:
    design = case.scenario.design
    whole = Design(
        design.names,
        design.weights,
        tuple(size if kind else None for size, kind in zip(design.shape, design.populations, strict=True)),
    )
    assert truth(case.law, whole, case.kernel) == truth(case.law, design.census(), case.kernel)


@quick
@given(any_cases, st.data())
def test_items_do_not_mix(case: so.Case, data: st.DataObject) -> None:
    design = case.scenario.design
    other = data.draw(so.verdicts(design.shape, case.scenario.n_classes, case.scenario.repeats))
    both = estimate(np.stack([case.verdicts, other]), design, case.kernel)
    for row, codes in enumerate((case.verdicts, other)):
        assert {name: values[row] for name, values in both.items()} == estimate(codes, design, case.kernel)


@quick
@given(any_cases, st.data())
def test_certain_verdicts_need_no_correction(case: so.Case, data: st.DataObject) -> None:
    design, classes = case.scenario.design, case.scenario.n_classes
    codes = data.draw(so.verdicts(design.shape, classes, 1))
    law = as_fractions(codes == np.arange(classes))
    repeated = np.repeat(codes, case.scenario.repeats, axis=-1)
    assert estimate(repeated, design, case.kernel) == truth(law, design, case.kernel)


@quick
@given(any_cases)
def test_declared_components_are_their_signed_sums(case: so.Case) -> None:
    """The disagreement that a new prompt adds while all else is kept, and three times the total less the call."""
    design = case.scenario.design
    kept = design.names[1:]
    declared = (
        Component("new prompt", ((kept, 1), (design.names, -1))),
        Component("contrast", (((), 3), (design.names, Fraction(-1, 2)), ((), 0))),
    )
    found = _estimates.plugin_from(case.law, design, declared, case.kernel)
    expected = oracle_truth(case.law, design, case.kernel, components=declared)
    assert found == [expected["new prompt"], expected["contrast"]]
    assert expected["contrast"] == 3 * expected["total"] - expected["call"] / 2
