"""Unlisted mass may be of any class: it is no contradiction, and does not hide one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from secondorder.core._concordance import _completed, _statistic, concordance

from .conftest import answer, listed, read


@pytest.mark.parametrize("share", [(0.0, 0.0, 1.0), (0.3, 0.2, 0.5), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("unlisted", [0.03, 0.3])
def test_true_lists_with_unlisted_mass_are_rarely_contradicted(share, unlisted):
    """At most 5 % of true cubes are: 30 of them have 7 or more by chance in 0.07 % of the seeds at the very level.

    With the mass given to whatever each call sampled, most of them were.
    """
    rng = np.random.default_rng(3)
    alarms = 0
    for seed in range(30):
        listed = np.repeat(rng.dirichlet([5, 4], size=(40, 1)), 2, axis=1) * (1 - unlisted)
        law = np.concatenate([listed, np.zeros((40, 2, 1))], -1) + unlisted * np.array(share)
        codes = (rng.random((40, 2, 1)) >= law.cumsum(-1)[..., :-1]).sum(-1)
        told = np.concatenate([listed, np.full((40, 2, 1), unlisted)], -1)
        found = concordance(told, codes, unlisted=np.full((40, 2), unlisted), seed=seed)
        alarms += min(found.total_pvalue, np.nanmin(found.adjusted)) <= 0.025
    assert alarms < 7


def test_verdicts_beyond_what_unlisted_mass_allows_are_a_contradiction():
    told = np.broadcast_to([0.9, 0.05, 0.05], (40, 2, 3))
    codes = np.broadcast_to([0, 1], (40, 2))
    assert concordance(told, codes, unlisted=np.full((40, 2), 0.05)).total_pvalue < 0.002


def test_unlisted_mass_is_shared_out_as_agrees_best_with_the_counts():
    """Against four thousand other shares of the same mass; classes that no list has, and none unlisted, among them."""
    rng = np.random.default_rng(4)
    for case in range(50):
        n_classes, n = int(rng.integers(2, 6)), int(rng.integers(1, 6))
        free = rng.random(n) * (case % 5 > 0)
        listed = rng.dirichlet(np.full(n_classes, 0.3), size=n) * (1 - free)[:, None]
        if case % 2 and case % 5:
            listed[:, 0] = 0.0
            free = 1 - listed.sum(1)
        counts = np.bincount(rng.integers(0, n_classes, n), minlength=n_classes).astype(float)
        made = _completed(listed, free, counts)
        assert np.abs(made.sum(-1) - 1).max() < 1e-12
        assert (made >= listed).all()
        others = listed.sum(0) + free.sum() * rng.dirichlet(np.full(n_classes, 0.4), size=4000)
        least = float(_statistic(counts, made.sum(0)))
        assert least <= _statistic(np.broadcast_to(counts, others.shape), others).min() + 1e-9


def test_a_listed_probability_of_a_few_last_bits_is_a_number_like_others():
    found = concordance([[[1.0, 5e-324]]], [[1]], unlisted=[[0.0]])
    assert found.pvalue[0] == pytest.approx(0.0, abs=1e-300)


def test_behind_a_sampled_reason_bottom_is_counted_once():
    """Exact expectation over what the call sampled: the law, though the token may say no verdict, or go on to one.

    ``A`` .5, ``B`` .3, ``Hm`` .1, which is ⊥, and ``\\n`` .1, behind which the token is drawn again from A .2, B .8.
    """
    tokens, after = (("A", 0.5), ("B", 0.3), ("Hm", 0.1), ("\n", 0.1)), (("A", 0.2), ("B", 0.8))
    mean = dict.fromkeys("12⊥", 0.0)

    def add(text: str, chance: float, *entries: tuple[str, list[dict[str, Any]]]) -> None:
        soft = read(text, answer(*entries))
        assert not soft.reason
        for label, p in soft.probabilities.items():
            mean[label] += chance * p
        mean["⊥"] += chance * (1 - sum(soft.probabilities.values()))

    for token, p in tokens[:3]:
        add(token, p, (token, listed(*tokens)))
    for token, p in after:
        add("\n" + token, tokens[3][1] * p, ("\n", listed(*tokens)), (token, listed(*after)))
    assert mean == pytest.approx({"1": 0.5 + 0.1 * 0.2, "2": 0.3 + 0.1 * 0.8, "⊥": 0.1}, abs=1e-12)
