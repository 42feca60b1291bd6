"""Which dimension holds the judges, the wordings and the orders: what a study compares follows the roles, not names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from secondorder._schema import ITEM, JUDGE, ORDER, PROMPT, REPEAT
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Roles", "roles_of"]


class Roles(NamedTuple):
    """Dimensions by role; None where there is none.

    Attributes
    ----------
    judge
        The dimension called ``judge``, or else what one ``--by`` names.
    prompt
        The facet called ``prompt``, or else the first one (in the order of ``--facet``) that has no other role.
    order
        The facet called ``order``: that two levels swap the candidates is not guessed.
    """

    judge: str | None
    prompt: str | None
    order: str | None

    @property
    def compared(self) -> str | None:
        """What is compared where nothing is said: wordings, or judges, or orders."""
        return self.prompt or self.judge or self.order


def roles_of(
    data: xr.Dataset,
    *,
    judge: str | None = None,
    prompt: str | None = None,
    order: str | None = None,
    taken: str | None = None,
) -> Roles:
    """Roles of the dimensions of a cube or of scores; what a flag names is that.

    Parameters
    ----------
    data : Dataset
    judge, prompt, order : str, optional
        What ``--judge``, ``--prompt`` and ``--order`` name.
    taken : str, optional
        A dimension with another role, such as the system.

    Raises
    ------
    InputError
        When a flag names no dimension, or one has two roles.
    """
    from secondorder._labels._attributes import attribute

    array = data["verdict" if "verdict" in data else "score"]
    dims = [str(dim) for dim in array.dims if dim not in (ITEM, REPEAT)]
    given = {"--judge": judge, "--prompt": prompt, "--order": order}
    named = [name for name in given.values() if name is not None]
    for flag, name in given.items():
        if name is not None and (name not in dims or named.count(name) > 1):
            what = "has two roles" if name in dims else "is no dimension"
            raise InputError(f"{name!r} {what}", place=flag, remedy=f"dimensions: {', '.join(dims) or 'none'}")
    free = [dim for dim in dims if dim not in named and dim != taken]
    declared = attribute(data, "facets")
    groups = [] if declared is None else [dim for dim in free if dim not in declared]
    if judge is None and JUDGE in free:
        judge = JUDGE
    elif judge is None and len(groups) == 1 and len(attribute(data, "by", groups)) == 1 and groups[0] != PROMPT:
        judge = groups[0]
    order = order or (ORDER if ORDER in free else None)
    others = [dim for dim in free if dim not in (judge, order)]
    facets = [dim for dim in others if dim not in groups]
    prompt = prompt or (PROMPT if PROMPT in others else next(iter(facets), None))
    return Roles(judge, prompt, order)
