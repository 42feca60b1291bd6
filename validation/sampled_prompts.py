"""Random facets: prompts sampled from a policy, or without replacement from a list, shared by all items."""

from __future__ import annotations

from secondorder import Facet
from secondorder.simulate import Claim, Expect, Mechanism, Study, laws

LISTED = 12


def mechanism(drawn: str, K: int) -> Mechanism:
    """Five items, each with its own response to each of twelve listed prompts."""
    facets = {"prompt": LISTED, "order": 2}
    law = laws.dirichlet([0.5, 0.3, 0.2], 6, facets, over=["prompt", "order"], items=5, seed=7)
    prompt = Facet("prompt", kind="random", population=LISTED if drawn == "list" else None)
    return Mechanism(law, repeats=2, facets=[prompt, "order"], levels={"prompt": K})


STUDY = Study(
    name="sampled_prompts",
    aims="Do a few sampled prompts estimate the components of the policy that they come from, without bias?",
    factors={"drawn": ("policy", "list"), "K": (2, 6)},
    mechanism=mechanism,
    replicates=400_000,
    seed=13,
)

CLAIM = Claim(
    name="sampled_prompts",
    statement="With prompts sampled from a policy or a list, debiased components are unbiased for it.",
    study=STUDY,
    expects=(Expect("bias", "debiased", equals=0.0),),
    false_alarm=1e-6,
    quick_replicates=20_000,
)
