"""Disagreement kernels: their values, their negative type, and the refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondorder.core._kernels import (
    check_kernel,
    interval_kernel,
    interval_with_invalid,
    krippendorff_ordinal_kernel,
    midpoint_invalid,
    negative_type_gap,
    nominal_kernel,
    ordinal_kernel,
)
from secondorder.errors import KernelError
from secondorder.testing import as_fractions, exact_design, oracle_negative_component, oracle_truth
from secondorder.testing import strategies as so

quick = settings(max_examples=40, deadline=None, database=None)


def is_negative_type(kernel: np.ndarray) -> bool:
    """Exactly: every principal minor of the Gram matrix of the differences from class 0 is at least 0."""
    size = len(kernel)
    gram = [[kernel[i, 0] + kernel[j, 0] - kernel[i, j] for j in range(1, size)] for i in range(1, size)]
    chosen = (rows for k in range(1, size) for rows in itertools.combinations(range(size - 1), k))
    return all(determinant([[gram[i][j] for j in rows] for i in rows]) >= 0 for rows in chosen)


def determinant(rows: list[list[Any]]) -> Any:
    if len(rows) == 1:
        return rows[0][0]
    minors = ([row[:j] + row[j + 1 :] for row in rows[1:]] for j in range(len(rows)))
    return sum((-1) ** j * rows[0][j] * determinant(minor) for j, minor in enumerate(minors))


def symmetric(size: int, entries: Any) -> np.ndarray:
    matrix = np.zeros((size, size), dtype=np.int64)
    matrix[np.triu_indices(size, 1)] = entries
    return matrix + matrix.T


def accepted(matrix: Any) -> bool:
    try:
        check_kernel(np.asarray(matrix, dtype=float), len(matrix))
    except KernelError:
        return False
    return True


def tolerance_kernel(size: int, width: int) -> np.ndarray:
    rank = np.arange(size)
    return (abs(rank[:, None] - rank) > width).astype(float)


# Negative type -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "largest", "denominator"), [(3, 5, 10), (4, 2, 4)])
def test_eigenvalue_check_equals_exact_minors_and_brute_force(size: int, largest: int, denominator: int) -> None:
    """All whole-number kernels of a size; the search finds a pair of laws exactly where the eigenvalue is negative."""
    verdicts = set()
    for entries in itertools.product(range(largest + 1), repeat=size * (size - 1) // 2):
        matrix = symmetric(size, entries)
        exact = is_negative_type(matrix)
        assert accepted(matrix) == exact
        assert (oracle_negative_component(matrix, denominator=denominator) is None) == exact
        verdicts.add(exact)
    assert verdicts == {True, False}


def test_a_kernel_that_is_not_of_negative_type_has_a_negative_component() -> None:
    found = oracle_negative_component(tolerance_kernel(3, 1))
    assert found is not None
    assert oracle_truth(np.stack(found), exact_design({"prompt": 2}), tolerance_kernel(3, 1))["prompt"] < 0


@quick
@given(st.integers(2, 5).flatmap(so.kernels))
def test_kernels_of_the_strategies_are_of_negative_type(kernel: np.ndarray) -> None:
    assert is_negative_type(kernel)
    assert accepted(kernel)


@pytest.mark.parametrize("size", range(4, 9))
def test_tolerance_and_truncated_kernels_are_refused(size: int) -> None:
    rank = np.arange(size, dtype=float)
    squares = (rank[:, None] - rank) ** 2
    for matrix in (tolerance_kernel(size, 1), np.minimum(squares, 4), squares**1.5):
        with pytest.raises(KernelError, match=r"not of negative type.*allow_indefinite=True"):
            check_kernel(matrix, size)
        assert (check_kernel(matrix, size, allow_indefinite=True) == matrix).all()


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0, 1.5, 2.0])
def test_powers_up_to_two_and_truncated_distances_are_accepted(power: float) -> None:
    scores = np.array([0, 1, 1, 3, 7], dtype=float)
    distance = abs(scores[:, None] - scores)
    check_kernel(distance**power, 5)
    check_kernel(np.minimum(distance, 2), 5)


def test_sums_of_kernels_are_accepted() -> None:
    check_kernel(nominal_kernel(4) + 0.3 * ordinal_kernel(4) + 2 * interval_kernel([1, 2, 2, 9]), 4)


# The named kernels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(2, 8))
def test_named_kernels_are_accepted(size: int) -> None:
    scores = [k * k / 3 for k in range(size)]
    for matrix in (
        nominal_kernel(size),
        ordinal_kernel(size),
        ordinal_kernel(size, bottom=True),
        interval_kernel(scores),
        interval_kernel(scores, standardise=True),
        interval_with_invalid(scores, 2.5, 0.0),
        interval_with_invalid(scores, *midpoint_invalid(scores)),
        krippendorff_ordinal_kernel([3, 0, 5, 1, 2, 2, 9][:size]),
    ):
        assert (check_kernel(matrix, len(matrix)) == matrix).all()


@pytest.mark.parametrize("size", range(2, 8))
def test_ordinal_is_the_share_of_cut_points_between(size: int) -> None:
    cuts = [[sum(min(i, j) <= cut < max(i, j) for cut in range(size - 1)) for j in range(size)] for i in range(size)]
    np.testing.assert_allclose(ordinal_kernel(size), np.array(cuts) / (size - 1), rtol=1e-15)


@pytest.mark.parametrize("size", range(2, 12))
def test_ordinal_bottom_stands_at_least_a_quarter_away(size: int) -> None:
    check_kernel(ordinal_kernel(size, bottom=True, bottom_distance=0.25), size + 1)
    with pytest.raises(KernelError, match="not of negative type"):
        check_kernel(ordinal_kernel(size, bottom=True, bottom_distance=0.2499), size + 1)


@pytest.mark.parametrize("distance", [0.1, 0.5, 1.0, 2.0, 10.0, 1e4])
def test_a_constant_distance_of_invalid_from_three_scores_is_refused(distance: float) -> None:
    """Scores lie on a line, and no point is equally far from three points of a line."""
    matrix = np.full((4, 4), distance)
    matrix[:3, :3] = interval_kernel([1, 2, 3])
    matrix[3, 3] = 0
    assert not accepted(matrix)
    assert not is_negative_type(as_fractions(matrix))


def test_interval_is_the_variance_and_standardised_kappa_weights() -> None:
    scores, law = as_fractions([1, 2, 4, 9]), as_fractions(["1/2", "1/4", "1/8", "1/8"])
    mean = (scores * law).sum()
    assert law @ as_fractions(interval_kernel([1, 2, 4, 9])) @ law == (law * (scores - mean) ** 2).sum()
    size = 5
    rank = np.arange(size)
    # Quadratic and linear weights of weighted kappa as Cohen (1968) gives them: 1 - (i - j)^2 / (k - 1)^2.
    np.testing.assert_allclose(
        interval_kernel(rank, standardise=True), ((rank[:, None] - rank) / (size - 1)) ** 2, rtol=1e-15
    )
    np.testing.assert_allclose(ordinal_kernel(size), abs(rank[:, None] - rank) / (size - 1), rtol=1e-15)


@quick
@given(st.data(), so.scenarios())
def test_interval_with_invalid_is_the_score_plus_penalty_times_validity(
    data: st.DataObject, scenario: so.Scenario
) -> None:
    """Every component, exactly: score with invalid at its declared place, and nominal valid-or-not."""
    classes = max(scenario.n_classes, 3)
    law = data.draw(so.laws(scenario.design.shape, classes))
    scores = data.draw(st.lists(st.integers(-3, 6), min_size=classes - 1, max_size=classes - 1))
    score, penalty = data.draw(st.sampled_from([(2, 0.5), (0, 0.0), (-1.5, 3.0)]))
    whole = oracle_truth(law, scenario.design, interval_with_invalid(scores, score, penalty))
    placed = oracle_truth(law, scenario.design, interval_kernel([*scores, score]))
    validity = np.stack([law[..., :-1].sum(-1), law[..., -1]], -1)
    valid = oracle_truth(validity, scenario.design, nominal_kernel(2))
    assert whole == {name: placed[name] + Fraction(penalty) * valid[name] for name in whole}


def test_midpoint_is_the_middle_and_an_eighth_of_the_squared_range() -> None:
    assert midpoint_invalid([1, 5, 2]) == (3.0, 2.0)


def test_krippendorff_ordinal_follows_its_definition() -> None:
    totals = [3, 1, 4, 2]
    for i, j in itertools.combinations(range(4), 2):
        steps = sum(totals[i : j + 1]) - (totals[i] + totals[j]) / 2
        assert math.isclose(krippendorff_ordinal_kernel(totals)[i, j], steps**2 / 2)


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "classes", "words"),
    [
        ([[0, 1], [1, 0]], 3, r"shape \(2, 2\) for 3 classes; give a 3 x 3"),
        ([[0, 1, 1], [1, 0, 1]], 2, "shape"),
        ([[0, np.nan], [np.nan, 0]], 2, "NaN or infinity"),
        ([[0, np.inf], [np.inf, 0]], 2, "NaN or infinity"),
        ([[0, 1e200], [1e200, 0]], 2, "the largest is 1e\\+200; rescale"),
        ([[0, 1e-200], [1e-200, 0]], 2, "the largest is 1e-200; rescale"),
        ([[0, 1], [2, 0]], 2, r"D\[0,1\] = 1 but D\[1,0\] = 2"),
        ([[0, 1], [1, 0.5]], 2, r"D\[1,1\] = 0.5"),
        ([[0, -1], [-1, 0]], 2, r"D\[0,1\] = -1"),
        (tolerance_kernel(3, 1), 3, "not of negative type"),
    ],
)
def test_what_is_no_kernel_is_refused(matrix: Any, classes: int, words: str) -> None:
    with pytest.raises(KernelError, match=words):
        check_kernel(np.array(matrix, dtype=float), classes)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ordinal_kernel(1), "1 ordered class"),
        (lambda: interval_kernel([1, np.nan]), "finite"),
        (lambda: interval_kernel([[1, 2], [3, 4]]), "finite"),
        (lambda: interval_kernel([2, 2], standardise=True), "all scores are equal"),
        (lambda: interval_with_invalid([1, 2], 1.5, -0.1), "penalty -0.1 is negative"),
        (lambda: interval_with_invalid([1, 2], 1.5, np.nan), "penalty nan"),
        (lambda: interval_kernel([1e308, -1e308], standardise=True), "NaN or infinity"),
        (lambda: interval_kernel([1e200, 0]), "the largest is 1e\\+200; rescale"),
        (lambda: interval_kernel([1e-200, 0]), "the largest is 1e-200; rescale"),
        (lambda: interval_with_invalid([1, 2], 1.5, 1e300), "penalty: the largest is 1e\\+300"),
        (lambda: interval_with_invalid([1, 2], 1e300, 1.0), "the largest is 1e\\+300"),
    ],
)
def test_bad_parameters_are_refused(make: Any, words: str) -> None:
    with pytest.raises(KernelError, match=words):
        make()


def test_scale_of_a_kernel_does_not_decide() -> None:
    """The eigenvalue is judged relative to the largest entry."""
    for scale in (1e-9, 1.0, 1e9):
        check_kernel(interval_kernel([0, 1, 3, 8]) * scale, 4)
        with pytest.raises(KernelError):
            check_kernel(tolerance_kernel(4, 1) * scale, 4)
    assert negative_type_gap(nominal_kernel(3)) > -1e-15
