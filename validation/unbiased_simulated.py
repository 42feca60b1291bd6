"""Bias of plug-in and debiased components in designs too large to enumerate."""

from __future__ import annotations

from secondorder.simulate import Claim, Expect, Mechanism, Study, laws

FACETS = {"prompt": 6, "order": 2}


def mechanism(law: str, R: int) -> Mechanism:
    """Laws of several kinds; four items each, so that item means are taken too."""
    if law == "scores":
        shifts = {"prompt": [-0.3, -0.1, 0, 0, 0.1, 0.3]}
        made = laws.scores([1, 2, 3, 4, 5], FACETS, location=[2.0, 3.0, 4.0], spread=0.6, shifts=shifts)
        return Mechanism(laws.with_invalid(made, 0.03), repeats=R, kernel="ordinal")
    if law == "dirichlet":
        made = laws.dirichlet([0.5, 0.3, 0.2], 8, FACETS, over=["prompt", "order"], items=4, seed=5)
        return Mechanism(made, repeats=R)
    if law == "unequal":
        calls = [[R, R + 1], [R, R], [R + 2, R], [R, R], [R, R + 1], [R, R]]
        values = {"prompt": 0.02, "order": 0.01, "prompt:order": 0.005}
        return Mechanism(laws.effects([0.4, 0.3, 0.2, 0.1], FACETS, values), repeats=calls)
    biased = laws.position_bias([0.6, 0.3, 0.1], FACETS, 0.2)
    return Mechanism(laws.lazy(biased, 0.1, "a"), repeats=R)


STUDY = Study(
    name="unbiased",
    aims="Are debiased components unbiased, and is the plug-in's bias what the closed form says?",
    factors={"law": ("scores", "dirichlet", "unequal", "position"), "R": (2, 5)},
    mechanism=mechanism,
    replicates=1_000_000,
    seed=12,
)

CLAIM = Claim(
    name="unbiased_simulated",
    statement="In simulated audits debiased components are unbiased, and the plug-in's bias is the closed form's.",
    study=STUDY,
    expects=(Expect("bias", "debiased", equals=0.0), Expect("bias", "plugin", equals="plugin_bias")),
    false_alarm=1e-6,
    quick_replicates=100_000,
)
