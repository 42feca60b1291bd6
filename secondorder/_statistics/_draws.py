"""Draws of components in one form: a Bayesian companion and the bootstrap, both as ArviZ data trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from secondorder._design import Facet
from secondorder._labels._results import Table
from secondorder._statistics._checked import MOST_DRAWS, finite, whole
from secondorder._statistics._comparable import one_of_groups
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition, required
from secondorder._statistics._group import Group
from secondorder._statistics._kernel import InvalidAs
from secondorder.core._posterior import Prior, posterior_components
from secondorder.errors import InputError

__all__ = ["bootstrap", "draws_table", "posterior"]

FACTS = ("sampling", "model", "mass", "shape", "rate", "seed")

BIASED = (
    "frequentist bias: unless laws follow this prior, the limits can miss the truth nearly always (small effects come "
    "out too large, call noise too small); not a replacement of the debiased estimate and its band; items at hand are "
    "fixed"
)
LEAST, MOST = 1e-6, 1e6
"""Of every parameter of the prior."""


def bootstrap(decomposition: Decomposition) -> xr.DataTree:
    """Whole-item bootstrap draws of every component, debiased and plug-in drawn together.

    Parameters
    ----------
    decomposition : Decomposition
        With one group; its settings say how many draws and by which seed.

    Returns
    -------
    DataTree
        ArviZ's layout: ``/posterior`` with dims (chain, draw, component) and variables ``component`` values
        ``debiased`` and ``plugin``; one chain. These are draws of a sampling distribution, not of a posterior.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": item, "prompt": prompt, "run": str(r), "verdict": verdict}
    ...     for item, answers in {"1": "AABB", "2": "ABAB", "3": "AAAA"}.items()
    ...     for prompt, calls in {"p": answers[:2], "q": answers[2:]}.items() for r, verdict in enumerate(calls)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> so.bootstrap(so.decompose(cube, draws=200))["posterior"].debiased.dims
    ('chain', 'draw', 'component')
    """
    group = _one_group(required(decomposition, "bootstrap"))
    draws = group.resampled.draws
    size = len(group.components)
    return _tree(
        {"debiased": draws[None, :, :size], "plugin": draws[None, :, size:]},
        {"debiased": ["component"], "plugin": ["component"]},
        {"component": list(group.names)},
        {"sampling": "bootstrap of whole items", "seed": decomposition.settings.seed},
    )


def posterior(
    cube: xr.Dataset,
    *,
    prior: Mapping[str, float] | None = None,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int = 0,
    keep_items: bool = False,
    facets: str | Facet | Sequence[str | Facet] | None = None,
    kernel: Any = None,
    scores: Mapping[str, float] | None = None,
    invalid: InvalidAs = "class",
) -> xr.DataTree:
    """Posterior draws of all components under hierarchical Dirichlet-multinomial laws, per item.

    A companion to the debiased estimates, never their replacement: the laws of an item's cells are drawn towards each
    other by a prior (weight `mass` per class on their barycentre, a Gamma prior on how closely they follow it), so that
    every draw is non-negative and small effects are shrunk. As an estimator it is biased: away from zero where there
    is no effect, towards zero where effects are large.

    Parameters
    ----------
    cube : Dataset
        With one group; any number of calls per cell.
    prior : mapping, optional
        ``mass``, ``shape``, ``rate``; default .5, 1, .1 (mean concentration 10).
    draws, tune, chains : int
    seed : int
    keep_items : bool
        Also keep every item's draws and concentrations.
    facets, kernel, scores, invalid
        As for :func:`secondorder.decompose`.

    Returns
    -------
    DataTree
        ``/posterior`` with dims (chain, draw, component): ``component`` macroaverages over the items at hand; with
        `keep_items` also ``item_value`` and ``concentration``. ArviZ summaries and plots read it.
        ``/constant_data`` holds the debiased estimates that the draws stand beside.

    Raises
    ------
    InputError
        For several groups, soft verdicts, or an unknown word in `prior`.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": item, "prompt": prompt, "run": run, "verdict": verdict}
    ...     for item, prompt, verdicts in [("1", "p", "AB"), ("1", "q", "BB"), ("2", "p", "AA"), ("2", "q", "AB")]
    ...     for run, verdict in enumerate(verdicts)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets="prompt", repeat="run", verdict="verdict", classes=["A", "B"])
    >>> draws = so.posterior(cube, draws=20, tune=20, chains=2)["posterior"].value
    >>> dict(draws.sizes), bool((draws > 0).all())
    ({'chain': 2, 'draw': 20, 'component': 3}, True)
    """
    unknown = set(prior or {}) - set(Prior._fields)
    if unknown:
        raise InputError(f"{sorted(unknown)} are no parameters", place="prior", remedy=f"say {list(Prior._fields)}")
    chosen = Prior(**(prior or {}))
    for name, value in chosen._asdict().items():
        if not LEAST <= finite(value, f"prior {name}", positive=True) <= MOST:
            raise InputError(
                f"{value:g} is not between {LEAST:g} and {MOST:g}",
                place=f"prior {name}",
                remedy="beyond these the draws are lost in rounding",
            )
    whole(draws * whole(chains, "chains", least=1), "draws of all chains", least=2, most=MOST_DRAWS)
    whole(tune, "tune", most=MOST_DRAWS)
    result = decompose(cube, facets=facets, kernel=kernel, scores=scores, invalid=invalid, seed=seed)
    group = _one_group(result)
    if group.calls.soft is not None:
        raise InputError(
            "verdicts are soft, and the model is one of counts",
            place="posterior",
            remedy="give a cube of hard verdicts",
        )
    codes = group.calls.codes
    counts = np.stack([(codes == code).sum(-1) for code in range(len(group.calls.kernel))], axis=-1)
    values, concentration = posterior_components(
        counts, group.design, group.components, group.calls.kernel,
        seed=seed, prior=chosen, draws=draws, tune=tune, chains=chains,
    )  # fmt: skip
    variables = {"value": values.mean(2)}
    dims = {"value": ["component"]}
    coords: dict[str, Any] = {"component": list(group.names)}
    if keep_items:
        variables |= {"item_value": values, "concentration": concentration}
        dims |= {"item_value": ["item", "component"], "concentration": ["item"]}
        coords["item"] = list(group.items)
    note = {"model": "Dirichlet-multinomial laws per item", "seed": seed, **chosen._asdict()}
    tree = _tree(variables, dims, coords, note)
    # Not draws: what the draws stand beside.
    own = [estimate.estimate for estimate in group.estimates]
    tree["constant_data"] = xr.Dataset({"debiased": ("component", own)}, coords={"component": coords["component"]})
    return tree


def draws_table(tree: xr.DataTree) -> Table:
    """Mean, standard deviation and central 95 % of every component's draws; beside a posterior, the estimates."""
    data = tree["posterior"].to_dataset()
    beside = tree["constant_data"].debiased if "constant_data" in tree.children else None
    rows = []
    shown = [name for name in ("value", "debiased", "plugin") if name in data]
    for variable in shown:
        for component in data.component.values.tolist():
            values = data[variable].sel(component=component).values
            low, high = np.quantile(values, (0.025, 0.975))
            label = component if len(shown) == 1 else f"{component}, {variable}"
            own = () if beside is None else (float(beside.sel(component=component)),)
            rows.append((label, *own, float(values.mean()), float(values.std(ddof=1)), float(low), float(high)))
    facts = ", ".join(f"{name} {value}" for name, value in tree["posterior"].attrs.items() if name in FACTS)
    if beside is None:
        return Table("", ("component", "mean", "sd", "2.5%", "97.5%"), tuple(rows), (facts,))
    return Table("", ("component", "debiased", "mean", "sd", "2.5%", "97.5%"), tuple(rows), (facts, BIASED))


def _one_group(decomposition: Decomposition) -> Group:
    if len(decomposition.groups) != 1:
        raise InputError(
            f"there are {len(decomposition.groups)} groups",
            place="decomposition",
            remedy=one_of_groups(decomposition.groups),
        )
    return decomposition.groups[0]


def _tree(
    variables: Mapping[str, Any], dims: Mapping[str, list[str]], coords: Mapping[str, Any], attrs: Mapping[str, Any]
) -> xr.DataTree:
    import arviz_base

    tree: xr.DataTree = arviz_base.from_dict({"posterior": dict(variables)}, dims=dict(dims), coords=dict(coords))
    tree["posterior"].attrs.update(attrs)
    return tree
