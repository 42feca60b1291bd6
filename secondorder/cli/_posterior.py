"""``secondorder posterior``: the Bayesian companion, and the bootstrap in the same form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._progress import working
from secondorder.cli._streams import show

_DRAWS = Group("Draws", sort_key=3)


def posterior(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    mass: Annotated[float, Parameter(group=_DRAWS)] = 0.5,
    shape: Annotated[float, Parameter(group=_DRAWS)] = 1.0,
    rate: Annotated[float, Parameter(group=_DRAWS)] = 0.1,
    draws: Annotated[int, Parameter(group=_DRAWS)] = 1000,
    tune: Annotated[int, Parameter(group=_DRAWS)] = 500,
    chains: Annotated[int, Parameter(group=_DRAWS)] = 4,
    seed: Annotated[int, Parameter(group=_DRAWS)] = 0,
    bootstrap: Annotated[bool, Parameter(group=_DRAWS, negative="")] = False,
    output: Annotated[Path | None, Parameter(group=_DRAWS)] = None,
) -> int:
    """Draws of all components under hierarchical Dirichlet-multinomial laws; a companion, never the estimate.

    As an estimator it is biased: upwards where there is no effect, downwards where effects are large.

    Parameters
    ----------
    source
        A table, a cube (.nc .zarr), a run folder, or - for CSV on stdin; of one judge.
    mass
        Weight of every class in the prior of an item's mean law.
    shape
        Of the Gamma prior of how closely a cell's law follows it.
    rate
        Of that prior; its mean is shape / rate.
    draws
        Draws kept per chain.
    tune
        Draws left out before.
    chains
        Chains.
    seed
        Seed of the draws.
    bootstrap
        Draw whole items instead: the sampling distribution of the debiased estimates and the plug-in.
    output
        .nc file for the draws, in ArviZ's layout.
    """
    from secondorder.cli._write import check_outputs

    if output is not None:
        check_outputs([output], [".nc"], [source])
    from secondorder._atomic import replacing
    from secondorder._statistics._decompose import decompose
    from secondorder._statistics._draws import bootstrap as resampled
    from secondorder._statistics._draws import draws_table
    from secondorder._statistics._draws import posterior as drawn

    with working("reading"):
        cube = columns.open(source)
    options = verdicts.options(cube)
    with working("drawing"):
        if bootstrap:
            tree = resampled(decompose(cube, draws=draws * chains, seed=seed, **options))
        else:
            prior = {"mass": mass, "shape": shape, "rate": rate}
            plain = {name: options[name] for name in ("kernel", "scores", "invalid") if name in options}
            tree = drawn(cube, prior=prior, draws=draws, tune=tune, chains=chains, seed=seed, **plain)
    if output is not None:
        with replacing(output) as fresh:
            tree.to_netcdf(str(fresh), engine="h5netcdf")
    show(draws_table(tree))
    return 0
