"""What soft verdicts gain, exactly, and the test that they agree with the drawn ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import secondorder as so
from secondorder._design import Design
from secondorder._statistics._components import all_components
from secondorder.core._cells import cells_from_soft
from secondorder.core._concordance import concordance
from secondorder.core._estimates import complete_pairs

# -- what is gained, exactly -----------------------------------------------------------------------------------------


def test_soft_estimates_are_unbiased_and_vary_less_by_enumeration():
    """Two prompts, two repeats; in every cell one of two reasons, then one of two verdicts: all 4**4 outcomes."""
    reasons = ((Fraction(1, 3), (Fraction(3, 4), Fraction(1, 4))), (Fraction(2, 3), (Fraction(1, 5), Fraction(4, 5))))
    other = ((Fraction(1, 2), (Fraction(1, 1), Fraction(0, 1))), (Fraction(1, 2), (Fraction(1, 2), Fraction(1, 2))))
    draws = [[(q * p, law, k) for q, law in cell for k, p in enumerate(law)] for cell in (reasons, other)]
    laws = [[sum(q * law[k] for q, law in cell) for k in range(2)] for cell in (reasons, other)]
    mean = [(a + b) / 2 for a, b in zip(*laws, strict=True)]
    true = sum((a - m) ** 2 for law in laws for a, m in zip(law, mean, strict=True)) / 2
    outcomes = list(itertools.product(draws[0], draws[0], draws[1], draws[1]))
    chance = np.array([float(math.prod(entry[0] for entry in outcome)) for outcome in outcomes])
    soft = np.array(
        [[[list(map(float, e[1])) for e in o[:2]], [list(map(float, e[1])) for e in o[2:]]] for o in outcomes]
    )
    hard = np.array([[[np.eye(2)[e[2]] for e in o[:2]], [np.eye(2)[e[2]] for e in o[2:]]] for o in outcomes])
    design = Design.from_facets([so.Facet("prompt")], [("x", "y")])
    component = all_components(design.names, ())
    at = [each.name for each in component].index("prompt")
    kernel = 1.0 - np.eye(2)
    values = {
        name: np.asarray(complete_pairs(cells_from_soft(v, kernel), design, component, kernel))[:, at]
        for name, v in (("soft", soft), ("hard", hard))
    }
    means = {name: float(chance @ v) for name, v in values.items()}
    assert means["soft"] == pytest.approx(float(true), abs=1e-14)
    assert means["hard"] == pytest.approx(float(true), abs=1e-14)
    variance = {name: float(chance @ (v - means[name]) ** 2) for name, v in values.items()}
    assert variance["soft"] < 0.5 * variance["hard"]


# -- the test of agreement -------------------------------------------------------------------------------------------


def test_p_values_of_cells_are_those_of_all_outcomes():
    """Every outcome of three calls with different vectors: the p value is the exact chance of its tail."""
    laws = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.4, 0.4, 0.2]])
    sequences = list(itertools.product(range(3), repeat=3))
    chance = np.array([math.prod(laws[k, c] for k, c in enumerate(s)) for s in sequences])
    expected = laws.sum(0)
    counts = np.array([np.bincount(s, minlength=3) for s in sequences])
    g = 2 * np.where(counts > 0, counts * np.log(np.maximum(counts, 1) / expected), 0.0).sum(1)
    found = concordance(np.broadcast_to(laws, (27, 3, 3)), sequences)
    np.testing.assert_allclose(found.g, g, atol=1e-12)
    np.testing.assert_allclose(found.pvalue, [chance[g >= x - 1e-9].sum() for x in g], atol=1e-12)


def test_drawn_p_values_agree_with_exact_ones(monkeypatch):
    """Ten cells of six calls. A drawn p of 1999 has sd <= .0112: ten within .05 fails by chance in < 1e-4 of seeds."""
    rng = np.random.default_rng(5)
    laws = rng.dirichlet(np.ones(4), (10, 6))
    codes = (rng.random((10, 6, 1)) >= laws.cumsum(-1)[..., :-1]).sum(-1)
    exact = concordance(laws, codes)
    monkeypatch.setattr("secondorder.core._concordance.MOST_STATES", 1)
    drawn = concordance(laws, codes)
    np.testing.assert_allclose(drawn.pvalue, exact.pvalue, atol=0.05)
    monkeypatch.setattr("secondorder.core._concordance.BUDGET", 1)
    np.testing.assert_allclose(concordance(laws, codes).total_pvalue, exact.total_pvalue, atol=0.15)


def test_agreement_keeps_its_level_and_sees_a_shift():
    """200 data sets of 20 cells x 4 calls. Under agreement each of both p values is <= .05 in at most 5 %: more than 24
    of 200 by chance has probability < 1e-4. A shift of .25 in every cell is seen in nearly all."""
    rng = np.random.default_rng(11)
    few = 200
    rejected = {"cells": 0, "total": 0, "shifted": 0}
    for seed in range(few):
        laws = rng.dirichlet(np.ones(3), (20, 1)).repeat(4, axis=1)
        u = rng.random((20, 4, 1))
        found = concordance(laws, (u >= laws.cumsum(-1)[..., :-1]).sum(-1), seed=seed)
        rejected["cells"] += bool((found.adjusted <= 0.05).any())
        rejected["total"] += found.total_pvalue <= 0.05
        shifted = 0.75 * laws + 0.25 * np.array([1.0, 0.0, 0.0])
        moved = concordance(laws, (u >= shifted.cumsum(-1)[..., :-1]).sum(-1), seed=seed)
        rejected["shifted"] += moved.total_pvalue <= 0.05
    assert rejected["cells"] <= 24
    assert rejected["total"] <= 24
    assert rejected["shifted"] >= 150


def test_unlisted_mass_is_no_contradiction_and_impossible_verdicts_are():
    laws = np.array([[[0.9, 0.0, 0.1]] * 4])
    codes = [[0, 0, 0, 1]]
    assert concordance(laws, codes).pvalue[0] == 0.0
    assert concordance(laws, codes, unlisted=np.full((1, 4), 0.1)).pvalue[0] > 0.05
    nothing = concordance(np.full((1, 2, 3), np.nan), [[-1, -1]])
    assert math.isnan(nothing.pvalue[0])
    assert math.isnan(nothing.total_pvalue)


def test_vectors_of_another_temperature_are_seen_though_no_share_moves():
    """Sixty cells of two calls, symmetric in the classes: most lists at half the temperature, or at twice it, are
    seen; of true ones at most 5 % (five or more of 20 by chance: 0.3 %). The shares alone saw one of 40."""
    rng = np.random.default_rng(5)
    seen = {0.5: 0, 1.0: 0, 2.0: 0}
    for seed in range(20):
        laws = np.repeat(rng.dirichlet([1.0, 1.0, 1.0], size=(60, 1)), 2, axis=1)
        codes = (rng.random((60, 2, 1)) >= laws.cumsum(-1)[..., :-1]).sum(-1)
        for temperature in seen:
            told = laws ** (1 / temperature)
            found = concordance(told / told.sum(-1, keepdims=True), codes, seed=seed)
            seen[temperature] += found.total_pvalue <= 0.025
    assert min(seen[0.5], seen[2.0]) >= 12
    assert seen[1.0] < 5


def test_surprise_keeps_its_level_whatever_unlisted_mass_is_of():
    """It is all of the likely class of every cell, or all of the other: the shares of the classes do not tell which.

    At most 2.5 % are alarms: five or more of 20 by chance in .02 % of the seeds.
    """
    rng = np.random.default_rng(6)
    alarms = 0
    free = np.full((60, 2), 0.3)
    for seed in range(20):
        first = rng.integers(0, 2, 60)
        told = np.zeros((60, 2, 3))
        told[np.arange(60), :, first] = 0.7
        told[..., -1] = 0.3
        likely = rng.random() < 0.5
        codes = np.where((rng.random((60, 2)) < 0.7) | likely, first[:, None], 1 - first[:, None])
        found = concordance(told, codes, unlisted=free, seed=seed)
        alarms += found.total_pvalue <= 0.025
    assert alarms < 5
