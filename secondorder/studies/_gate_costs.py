"""What a gate costs: mean calls from its error rates, the cost of full aggregation, and how common stable cases are."""

from __future__ import annotations

from dataclasses import dataclass

from secondorder._labels._results import Table, printed, render_table
from secondorder.errors import InputError

__all__ = ["GateCosts", "gate_costs"]


@printed
@dataclass(frozen=True)
class GateCosts:
    """Mean numbers of calls behind a gate.

    Attributes
    ----------
    calls_stable, calls_needs, calls : float
        Where the first verdict is the plurality's, where it is not, overall.
    saved_stable, saved_needs, saved : float
        Shares of the calls of asking every voter.
    voters : int
    """

    calls_stable: float
    calls_needs: float
    calls: float
    saved_stable: float
    saved_needs: float
    saved: float
    voters: int

    def __str__(self) -> str:
        rows = (
            ("stable cases", self.calls_stable, self.saved_stable),
            ("cases that need aggregation", self.calls_needs, self.saved_needs),
            ("all cases", self.calls, self.saved),
        )
        return render_table(Table("", ("behind the gate", "calls", f"saved of {self.voters}"), rows))


def gate_costs(
    *, tpr: float, tnr: float, stable: float, cost_stable: float, cost_needs: float | None = None, voters: int = 5
) -> GateCosts:
    """Mean calls when a gate looks at the first verdict and decides whether the others are asked.

    Positive means *needs aggregation*: the first verdict is not the plurality verdict. Negative means *stable*.

    Parameters
    ----------
    tpr, tnr : float
        Share of needing cases that the gate opens for; share of stable cases that it stays shut for.
    stable : float
        Share of stable cases.
    cost_stable, cost_needs : float
        Mean calls of full aggregation (the first call included) of stable and of needing cases; the second defaults to
        the first.
    voters : int
        Calls of asking everybody.

    Returns
    -------
    GateCosts
        ``calls_stable = TNR + (1 - TNR) C_s``, ``calls_needs = TPR C_u + (1 - TPR)``, and their mean by `stable`.

    Raises
    ------
    InputError
        When a rate is no share, or a cost lies outside 1..voters.

    Examples
    --------
    The prompt-lottery study's classifier at full aggregation of 4.247 calls; its 60 % hold for stable cases, overall
    it saves 40 %:

    >>> print(gate_costs(tpr=0.8506, tnr=0.6942, stable=0.44, cost_stable=4.247))
    behind the gate               calls  saved of 5
    stable cases                 1.9929      0.6014
    cases that need aggregation  3.7619      0.2476
    all cases                    2.9836      0.4033
    """
    needs = cost_stable if cost_needs is None else cost_needs
    for name, share in (("tpr", tpr), ("tnr", tnr), ("stable", stable)):
        if not 0 <= share <= 1:
            raise InputError(f"{name}={share:g}", place="gate_costs", remedy="give a share between 0 and 1")
    for name, cost in (("cost_stable", cost_stable), ("cost_needs", needs)):
        if not 1 <= cost <= voters:
            raise InputError(f"{name}={cost:g}", place="gate_costs", remedy=f"give calls between 1 and {voters}")
    calls_stable = tnr + (1 - tnr) * cost_stable
    calls_needs = tpr * needs + (1 - tpr)
    calls = stable * calls_stable + (1 - stable) * calls_needs
    saved_stable, saved_needs, saved = (1 - number / voters for number in (calls_stable, calls_needs, calls))
    return GateCosts(calls_stable, calls_needs, calls, saved_stable, saved_needs, saved, voters)
