"""Tests of facets, certificates, and prefixes against a reference: levels, meanings, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import secondorder as so
from secondorder.errors import InputError, UndefinedError

from .small_draws import cube_of, draw

# -- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hypothesis", ["calls", "labels", "benchmark"])
def test_p_values_of_a_judge_without_effects_keep_their_level(hypothesis: Any) -> None:
    # 100 audits: p <= .1 in at most .1 of them; more than 27 happen with probability 2e-7. A level of 36 % is found
    # with probability .96.
    pvalues = [
        so.permutation_test(cube_of(draw((6, 3, 1, 2), 100 + k)), "prompt", hypothesis=hypothesis, draws=19).pvalue
        for k in range(100)
    ]
    assert sum(p <= 0.1 for p in pvalues) <= binom.isf(5e-7, 100, 0.1)


def test_calls_at_one_repeat_may_depend_on_each_other() -> None:
    # Shared seeds: every prompt gives the same answer at the same repeat. Shuffled calls have too little spread and
    # make the debiased estimate (far below 0) the smallest of all; shuffled labels change nothing.
    codes = np.repeat(draw((30, 1, 1, 4), 3), 3, axis=1)
    assert so.permutation_test(cube_of(codes), "prompt", draws=99).pvalue == 1.0
    assert so.permutation_test(cube_of(codes), "prompt", draws=99, hypothesis="labels").pvalue == 1.0


def test_ties_are_counted() -> None:
    # One call of one item differs: every shuffle gives the same statistic, so p is 1.
    codes = np.zeros((4, 3, 1, 2), dtype=int)
    codes[0, 0, 0, 0] = 1
    test = so.permutation_test(cube_of(codes), "prompt", draws=99)
    assert test.pvalue == 1.0
    assert (test.item_pvalues[0] == 1.0).all()


def test_effects_on_single_items_are_found_with_few_false_discoveries() -> None:
    # Of 15 discoveries at a rate of .05 on 30 of 40 null items, five or more are false in two of ten thousand seeds.
    codes = draw((40, 2, 1, 6), 11)
    codes[:10, 0], codes[:10, 1] = 0, 1
    test = so.permutation_test(cube_of(codes), "prompt", draws=999)
    found = np.flatnonzero(test.item_adjusted[0][:, 0] <= 0.05)
    assert set(range(10)) <= set(found.tolist())
    assert len(found) <= 14
    assert test.components == ("prompt",)
    assert "items, q <= .05" in str(test)


def test_a_benchmark_wide_effect_is_not_an_effect_on_items() -> None:
    # On even items the first prompt leans to a, on odd ones to b: strong on items, nothing on the benchmark.
    leaning = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    laws = np.stack([leaning if i % 2 else leaning[::-1] for i in range(40)])[:, :, None, None, :]
    cube = cube_of(draw((40, 2, 1, 4), 12, laws))
    assert so.permutation_test(cube, "prompt", draws=199).pvalue == 0.005
    wide = so.permutation_test(cube, "prompt", draws=199, hypothesis="benchmark")
    assert wide.pvalue > 0.01  # uniform where there is no effect: one other seed in a hundred would fail
    assert wide.estimate[0, 0] == pytest.approx(so.benchmark_effects(so.decompose(cube)).estimate[0])
    together = np.stack([leaning] * 40)[:, :, None, None, :]
    both = cube_of(draw((40, 2, 1, 4), 12, together))
    assert so.permutation_test(both, "prompt", draws=199, hypothesis="benchmark").pvalue == 0.005


def test_what_cannot_be_tested_is_refused() -> None:
    cube = cube_of(draw((4, 3, 1, 2), 13))
    for call, match in (
        (lambda: so.permutation_test(cube, "wording"), "no facet 'wording'"),
        (lambda: so.permutation_test(cube, "order"), "'order' has one level"),
        (lambda: so.permutation_test(cube, "prompt", draws=5), "5 is not a whole number from 19"),
        (lambda: so.permutation_test(cube, "prompt", hypothesis="none"), "'none' is not a hypothesis"),
        (lambda: so.permutation_test(cube.isel(item=[0]), "prompt", hypothesis="benchmark"), "one item"),
        (lambda: so.permutation_test(cube.isel(repeat=[0]), "prompt"), "one call per cell"),
    ):
        with pytest.raises(InputError, match=match):
            call()


# -- certificates -----------------------------------------------------------------------------------------------------


def test_false_certificates_are_rare_at_the_threshold() -> None:
    # 20 items of each audit differ between two prompts, 80 do not: the value of the full audit is .1 by construction,
    # up to the calls, which never vary. "Below" .1 is false, "above" (at least) .1 is true.
    codes = np.zeros((100, 2, 1, 2), dtype=int)
    codes[:20, 1] = 1
    result = so.decompose(cube_of(codes))
    assert result["prompt"].estimate == pytest.approx(0.1)
    verdicts = [so.certify(result, "prompt", 0.1, seed=seed, alpha=0.1).verdict for seed in range(60)]
    # At most .1 are false, with probability 1 - 5e-7 of 60 not more than:
    assert verdicts.count("below") <= binom.isf(5e-7, 60, 0.1)
    # Just beside it the truth is certified once all items are known, by construction of the target.
    assert so.certify(result, "prompt", 0.101).verdict == "below"
    assert so.certify(result, "prompt", 0.099).verdict == "above"


def test_a_certificate_says_what_it_is_about() -> None:
    result = so.decompose(cube_of(np.zeros((150, 3, 1, 2), dtype=int)))
    full, source = (so.certify(result, "prompt", 0.05, target=target) for target in ("full-audit", "population"))
    assert full.verdict == source.verdict == "below"
    assert full.stopped_at is not None
    assert full.stopped_at < (source.stopped_at or 0) <= 150
    assert full.least_items is not None
    assert full.least_items <= full.stopped_at
    assert source.upper < 0.05
    assert "under optional stopping" in str(full)
    part = so.certify(so.decompose(cube_of(np.zeros((30, 3, 1, 2), dtype=int))), "prompt", 0.05, n_items=400)
    assert part.verdict == "open"


def test_what_cannot_be_certified_is_refused() -> None:
    cube = cube_of(draw((8, 3, 1, 4), 14), strata=list("xxxxyyyy"))
    result = so.decompose(cube)
    with pytest.raises(UndefinedError, match="stratified sample"):
        so.certify(result, "prompt", 0.1, target="population")
    assert so.certify(result, "prompt", 0.1).target == "full-audit"
    for options, match in (
        ({"alpha": 2}, "between 0 and 1"),
        ({"target": "everything"}, "not a target"),
        ({"n_items": 3}, "n_items is 3"),
    ):
        with pytest.raises(InputError, match=match):
            so.certify(result, "prompt", 0.1, **options)
    with pytest.raises(UndefinedError, match="no proven range"):
        so.certify(so.decompose(cube, pairs="panel"), "prompt", 0.1)
    assert so.certify(so.decompose(cube, pairs="across-repeats"), "prompt", 0.1).n_items == 8
    with pytest.raises(UndefinedError, match="one call per cell"):
        so.certify(so.decompose(cube.isel(repeat=[0])), "prompt", 0.1)


# -- reference --------------------------------------------------------------------------------------------------------


def test_prefixes_against_a_reference() -> None:
    laws = np.random.default_rng(1).dirichlet([3, 2, 1], size=(20, 3, 1, 1))
    cube, reference = cube_of(draw((20, 3, 1, 4), 1, laws)), cube_of(draw((20, 3, 1, 32), 2, laws))
    report = so.compare_reference(cube, reference)
    assert [row[2] for row in report.rows if row[1] == "prompt"] == [2, 4]
    truth = so.decompose(reference)
    j = truth.groups[0].index("prompt")
    two = so.decompose(cube.isel(repeat=slice(0, 2))).groups[0]
    _, _, depth, plug, debiased = next(row for row in report.rows if row[1] == "prompt")
    assert depth == 2
    assert plug == pytest.approx(np.abs(two.plugin_values[:, j] - truth.items[:, j]).mean())
    assert debiased == pytest.approx(np.abs(two.values[:, j] - truth.items[:, j]).mean())
    halves = [so.decompose(reference.isel(repeat=slice(*part))).items[:, j] for part in ((0, 16), (16, 32))]
    own = next(row for row in report.halves if row[1] == "prompt")
    assert own[2] == pytest.approx(np.abs(halves[0] - halves[1]).mean())
    assert report.n_items == 20
    # Items that one of them lacks are left out.
    assert so.compare_reference(cube.isel(item=slice(5)), reference).n_items == 5
    for other, match in ((cube, "the cube itself"), (reference.isel(repeat=slice(2)), "2 repeats")):
        with pytest.raises(InputError, match=match):
            so.compare_reference(cube, other)


def test_a_small_p_of_an_interaction_is_explained() -> None:
    cube = cube_of(draw((6, 3, 2, 2), 5))
    said = " ".join(str(so.permutation_test(cube, "prompt", draws=19)).split())
    assert "no evidence for an interaction where main effects exist" in said
    said = " ".join(str(so.permutation_test(cube, "prompt", draws=19, hypothesis="benchmark")).split())
    assert "interactions: no exact p" in said
    assert "no evidence" not in said


def test_what_is_counted_has_no_p_value_in_the_table() -> None:
    report = so.check_independence(cube_of(draw((6, 3, 2, 2), 5)), draws=199)
    row = next(row for row in report.tables()[0].rows if row[1] == "no call noise")
    assert row[3:5] == (None, None)
    assert all(isinstance(value, float) for value in report.tables()[0].rows[0][2:5])
