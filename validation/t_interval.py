"""Coverage of the default interval over items, where it should hold: many items, effects not sparse."""

from __future__ import annotations

from secondorder.simulate import Claim, Expect, Mechanism, Study, laws

FACETS = {"prompt": 6, "order": 2}


def mechanism(items: str, N: int) -> Mechanism:
    """A population of one law, or of many with moderate effects."""
    if items == "null":
        law = laws.exchangeable([0.4, 0.3, 0.2, 0.1], FACETS)
    else:
        law = laws.dirichlet([0.5, 0.3, 0.2], 6, FACETS, over=["prompt", "order"], items=300, seed=9)
    return Mechanism(law, repeats=2, items=N)


STUDY = Study(
    name="t_interval",
    aims="Does the t interval over items hold the population's components at its level?",
    factors={"items": ("null", "moderate"), "N": (50, 200)},
    mechanism=mechanism,
    methods=("debiased",),
    replicates=40_000,
    seed=14,
)

CLAIM = Claim(
    name="t_interval",
    statement="The 95 % t interval over 50 or 200 items covers call, prompt and total at 93.5 to 96.5 %.",
    study=STUDY,
    expects=(Expect("coverage", "debiased", at_least=0.935, at_most=0.965, estimands=("call", "prompt", "total")),),
    false_alarm=1e-6,
    quick_replicates=8_000,
)
