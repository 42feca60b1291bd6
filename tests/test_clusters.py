"""Levels and repeat blocks as units: closed forms against deletion, unbiasedness by enumeration of all samples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from secondorder._design import Design, standard_components
from secondorder.core._cells import cells_from_counts, cells_from_soft
from secondorder.core._clusters import ClusterParts, cluster_parts, cluster_tables, level_errors, two_way_errors
from secondorder.core._estimates import across_repeats, complete_pairs
from secondorder.core._gram import gram_variance
from secondorder.core._intervals import item_errors, t_interval
from secondorder.core._kernels import interval_kernel, nominal_kernel
from secondorder.core._repeat_blocks import block_variance
from secondorder.errors import DesignError

NAMES = ("prompt", "order")
COMPONENTS = standard_components(NAMES)


def design(prompts: int) -> Design:
    """Random prompts, orders of unequal weight."""
    return Design(NAMES, ((1 / prompts,) * prompts, (0.25, 0.75)), (float("inf"), None))


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    """Seven items, five prompts, two orders, three classes; unequal numbers of calls."""
    rng = np.random.default_rng(4)
    calls = rng.integers(2, 6, size=(7, 5, 2))
    return np.stack(
        [rng.multinomial(n, rng.dirichlet([0.6, 0.4, 0.3])) for n in calls.ravel()],
    ).reshape(7, 5, 2, 3)


KERNEL = interval_kernel([0, 1, 3])


def test_parts_add_up_and_the_jackknife_is_deletion(counts: np.ndarray) -> None:
    whole = np.asarray(complete_pairs(cells_from_counts(counts), design(5), COMPONENTS, KERNEL))
    parts = ClusterParts(
        *map(np.asarray, cluster_parts(cells_from_counts(counts), design(5), COMPONENTS, KERNEL, "prompt"))
    )
    np.testing.assert_allclose(np.mean(parts.same, -1) + np.mean(parts.distinct, -1), whole, atol=1e-14)
    without = np.array(
        [
            np.asarray(complete_pairs(cells_from_counts(np.delete(counts, k, 1)), design(4), COMPONENTS, KERNEL)).mean(
                0
            )
            for k in range(5)
        ]
    )
    got = level_errors(np.mean(parts.same, 0), np.mean(parts.distinct, 0))
    deletion = np.sqrt(4 / 5 * ((without - without.mean(0)) ** 2).sum(0))
    np.testing.assert_allclose(got.errors.estimate, whole.mean(0), atol=1e-14)
    np.testing.assert_allclose(got.errors.se, deletion, rtol=1e-12)
    assert got.errors.df.tolist() == [4.0] * 5
    np.testing.assert_allclose(got.influence.std(1, ddof=1) / 5**0.5, got.influence_se, rtol=1e-12)
    tables = np.asarray(cluster_tables(cells_from_counts(counts), design(5), COMPONENTS, KERNEL, "prompt"))
    gram = gram_variance(tables)
    np.testing.assert_allclose(gram.estimate, whole.mean(0), atol=1e-14)
    np.testing.assert_allclose(tables, np.swapaxes(tables, 1, 2), atol=1e-14)


def test_clusters_of_soft_verdicts_and_of_another_facet() -> None:
    verdicts = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 2, 3, 2))
    sampled = Design.balanced({"prompt": 2, "order": 3}, random=["order"], populations={"order": 9})
    cells = cells_from_soft(verdicts, KERNEL)
    parts = ClusterParts(*map(np.asarray, cluster_parts(cells, sampled, COMPONENTS, KERNEL, "order")))
    assert np.shape(parts.same) == (4, 5, 3)
    whole = complete_pairs(cells, sampled, COMPONENTS, KERNEL)
    np.testing.assert_allclose(np.mean(parts.same, -1) + np.mean(parts.distinct, -1), whole, atol=1e-14)
    with pytest.raises(DesignError, match="'prompt' is fixed: its levels are the whole target"):
        cluster_parts(cells, sampled, COMPONENTS, KERNEL, "prompt")
    with pytest.raises(DesignError, match="'judge' is not in the design"):
        cluster_tables(cells, sampled, COMPONENTS, KERNEL, "judge")


def test_variance_over_levels_is_unbiased_over_all_samples_of_four() -> None:
    """Every sample of four prompts (9 outcomes each, dependent over orders through the prompt's law): 6561 samples."""
    laws = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.5, 0.5]]])
    outcomes = np.array([[[a, 2 - a], [b, 2 - b]] for a, b in product(range(3), repeat=2)])
    binomial = np.where(outcomes[..., 0] == 1, 2, 1)
    chances = np.array([(binomial * (law**outcomes).prod(-1)).prod(-1) for law in laws])
    mass = np.array([0.3, 0.7]) @ chances
    assert mass.sum() == pytest.approx(1, abs=1e-15)
    # Values of pairs of levels do not depend on how many there are: read them off a cube that shows each outcome twice.
    twice = np.concatenate([outcomes, outcomes])[None]
    table = np.asarray(cluster_tables(cells_from_counts(twice), design(18), COMPONENTS, nominal_kernel(2), "prompt"))[
        :, :9, 9:
    ]
    samples = np.array(list(product(range(9), repeat=4)))
    chance = mass[samples].prod(1)
    pairs = np.moveaxis(table[:, samples[:, :, None], samples[:, None, :]], 0, 1)
    gram = gram_variance(pairs)
    direct = np.asarray(complete_pairs(cells_from_counts(outcomes[samples]), design(4), COMPONENTS, nominal_kernel(2)))
    np.testing.assert_allclose(gram.estimate, direct, atol=1e-14)
    centred = direct - chance @ direct
    truth = np.einsum("s,si,sj->ij", chance, centred, centred)
    np.testing.assert_allclose(np.tensordot(chance, gram.covariance, axes=1), truth, atol=1e-15)
    assert gram.covariance[:, 2, 2].min() < -1e-3


@pytest.mark.parametrize("across", [False, True])
def test_variance_over_repeat_blocks_is_unbiased_whatever_happens_inside(across: bool) -> None:
    """Four blocks of two prompts whose verdicts depend on each other: all 256 samples."""
    one = Design.balanced({"prompt": 2})
    components = standard_components(one.names)
    blocks = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    mass = np.array([0.5, 0.05, 0.15, 0.3])
    samples = np.array(list(product(range(4), repeat=4)))
    verdicts = np.eye(2)[np.swapaxes(blocks[samples], 1, 2)]
    got = block_variance(verdicts, one, components, nominal_kernel(2), across=across)
    if across:
        direct = across_repeats(verdicts, one, components, nominal_kernel(2))
    else:
        direct = complete_pairs(cells_from_counts(verdicts.sum(-2)), one, components, nominal_kernel(2))
    np.testing.assert_allclose(got.estimate, direct, atol=1e-15)
    chance = mass[samples].prod(1)
    centred = np.asarray(direct) - chance @ np.asarray(direct)
    truth = np.einsum("s,si,sj->ij", chance, centred, centred)
    np.testing.assert_allclose(np.tensordot(chance, got.covariance, axes=1), truth, atol=1e-15)


def test_blocks_of_soft_verdicts_give_the_complete_pair_estimate() -> None:
    verdicts = np.random.default_rng(1).dirichlet([1, 1, 1], size=(4, 2, 3, 5))
    fixed = Design(NAMES, ((0.4, 0.6), (0.2, 0.3, 0.5)), (None, None))
    cells = cells_from_soft(verdicts, KERNEL)
    got = block_variance(verdicts, fixed, COMPONENTS, KERNEL)
    np.testing.assert_allclose(got.estimate, complete_pairs(cells, fixed, COMPONENTS, KERNEL), atol=1e-14)
    assert np.isnan(block_variance(verdicts[..., :3, :], fixed, COMPONENTS, KERNEL).covariance).all()


def test_two_way_error_is_the_table_of_mean_squares() -> None:
    rng = np.random.default_rng(5)
    same, distinct = rng.normal(size=(9, 2, 4)), rng.normal(size=(9, 2, 4))
    got = two_way_errors(same, distinct)
    for column in range(2):
        a, h = same[:, column], distinct[:, column]
        phi = np.empty((9, 4))
        for s in range(9):
            mean = sum(a[s] + 2 * h[s]) / 4
            for k in range(4):
                phi[s, k] = (sum(a[s]) + sum(h[s])) / 4 + a[s, k] + 2 * h[s, k] - mean
        square_item = 4 * ((phi.mean(1) - phi.mean()) ** 2).sum() / 8
        square_level = 9 * ((phi.mean(0) - phi.mean()) ** 2).sum() / 3
        square_rest = sum(
            (phi[s, k] - phi[s].mean() - phi[:, k].mean() + phi.mean()) ** 2 for s in range(9) for k in range(4)
        ) / (8 * 3)
        item, level, rest = square_item / 36, square_level / 36, square_rest / 36
        np.testing.assert_allclose([got.item[column], got.level[column], got.interaction[column]], [item, level, rest])
        variance = max(item, level, item + level - rest)
        assert got.errors.se[column] ** 2 == pytest.approx(variance, rel=1e-12)
        df = variance**2 / (item**2 / 8 + level**2 / 3 + rest**2 / 24)
        assert got.errors.df[column] == pytest.approx(max(df, 3), rel=1e-12)
    band = t_interval(got.errors)
    assert (band.upper - band.lower > 0).all()


def test_two_way_error_with_strata_and_at_its_ends() -> None:
    rng = np.random.default_rng(6)
    strata = np.repeat([0, 1, 2], [3, 5, 6])
    effect = rng.normal(size=14)
    # Levels that differ in the same way in all items of a stratum leave no interaction, whatever strata do.
    shape = rng.normal(size=(3, 5))[strata]
    same = (effect[:, None] + shape - shape.mean(1, keepdims=True))[:, None, :]
    got = two_way_errors(same, np.zeros_like(same), strata)
    assert got.interaction[0] == pytest.approx(0, abs=1e-28)
    assert got.item[0] == pytest.approx(item_errors(effect[:, None], strata).se[0] ** 2, rel=1e-12)
    assert got.errors.se[0] ** 2 == pytest.approx(got.item[0] + got.level[0], rel=1e-12)
    flat = two_way_errors(np.zeros((4, 1, 3)), np.zeros((4, 1, 3)))
    assert np.isnan(flat.errors.se[0])
    assert flat.errors.reason == ("every item and every level gives the same value",)
    single = two_way_errors(same, np.zeros_like(same), np.arange(14) > 0)
    assert single.errors.reason == ("1 of 2 strata hold a single item: its spread is unknown",)
    level_only = two_way_errors(np.tile(rng.normal(size=3), (4, 1, 1)), np.zeros((4, 1, 3)))
    assert level_only.item[0] == 0
    assert level_only.errors.se[0] ** 2 == pytest.approx(level_only.level[0], rel=1e-12)


def test_levels_without_spread_or_too_few_say_so() -> None:
    flat = level_errors(np.full((1, 4), 0.1), np.zeros((1, 4)))
    assert flat.errors.reason == ("every level gives the same value",)
    assert np.isnan(flat.errors.se[0])
    two = level_errors([[0.1, 0.2]], [[0.0, 0.0]])
    assert two.errors.reason == ("2 levels: a jackknife needs at least three",)
    assert np.isnan(t_interval(two.errors).lower[0])
