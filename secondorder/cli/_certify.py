"""``secondorder certify``: is a component below a threshold, with an error rate that holds whenever one stops?"""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Group, Parameter

from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._progress import working
from secondorder.cli._soft import say_soft
from secondorder.cli._streams import show, show_json

_CERTIFY = Group("Certificate", sort_key=3)


def certify(
    source: Source,
    /,
    *,
    component: Annotated[str, Parameter(group=_CERTIFY)],
    tau: Annotated[float, Parameter(group=_CERTIFY)],
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    alpha: Annotated[float, Parameter(group=_CERTIFY)] = 0.05,
    target: Annotated[Literal["full-audit", "population"], Parameter(group=_CERTIFY)] = "full-audit",
    pairs: Annotated[Literal["complete", "across-repeats"] | None, Parameter(group=_CERTIFY)] = None,
    seed: Annotated[int, Parameter(group=_CERTIFY)] = 0,
    format: Annotated[Literal["table", "json"], Parameter(group=_CERTIFY)] = "table",
) -> int:
    """Certify that a component is below a threshold. Exit code 1 when it is not, or is not decided.

    Several groups (--by) are certified one by one, each at alpha: nothing is adjusted for their number.

    Parameters
    ----------
    source
        A table, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    component
        Component in question, such as prompt.
    tau
        Threshold, in the kernel's units.
    alpha
        Largest probability of a false certificate, whenever one stops.
    target
        full-audit: the value that this audit reports on all of its items; nothing of other items. population: the mean
        over the source that items were drawn from.
    pairs
        Which pairs of calls are compared. Default: complete; in a run, as its audit declared.
    seed
        Fixes the order of the items; to be chosen before the values are seen.
    format
        What stdout carries.
    """
    from secondorder._labels._results import wrapped_lines
    from secondorder._statistics._certificate import certify as certificate_of
    from secondorder._statistics._decompose import decompose

    with working("reading"):
        cube = columns.open(source)
    say_soft(cube)
    options = verdicts.options(cube, "pairs")
    result = decompose(cube, **(options if pairs is None else {**options, "pairs": pairs}))
    found = [
        (
            group.by,
            certificate_of(result.select(**dict(group.by)), component, tau, alpha=alpha, target=target, seed=seed),
        )
        for group in result.groups
    ]
    if format == "json":
        entries = [{"by": dict(by), **certificate.to_dict()} for by, certificate in found]
        plain = {"schema": "secondorder.certificates/1", "certificates": entries}
        show_json(plain)
    else:
        texts = [f"{', '.join(by.values())}\n{text}" if by else str(text) for by, text in found]
        if len(found) > 1:
            together = f"for all together: --alpha {alpha / len(found):.3g}"
            said = f"{len(found)} groups, each at error rate {alpha:g}; not adjusted for their number ({together})"
            texts.append("\n".join(wrapped_lines(said)))
        show("\n\n".join(texts))
    return 0 if all(certificate.verdict == "below" for _, certificate in found) else 1
