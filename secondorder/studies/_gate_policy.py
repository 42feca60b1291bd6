"""A gate as the policy of an acquisition: the first verdict decides whether the other calls of a case are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np

from secondorder._schema import BOTTOM, CODE_MISSING, PROMPT
from secondorder.errors import InputError
from secondorder.studies._gate import Gate
from secondorder.studies._gate_cases import VERDICT
from secondorder.studies._stopping import settled

__all__ = ["GatePolicy"]


class PlannedCall(Protocol):
    """Place of a call in the design."""

    @property
    def judge(self) -> str: ...
    @property
    def item(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def order(self) -> str: ...
    @property
    def repeat(self) -> int: ...


class Ended(Protocol):
    """Terminal outcome of a call."""

    @property
    def status(self) -> str: ...
    @property
    def verdict(self) -> str | None: ...


class GatePolicy:
    """Which calls a gate still wants, given the outcomes so far.

    A case is one judge, item, order and repeat. The gate's first prompt is always called; the calls of the other
    prompts wait for its verdict, and are made where the gate opens: all of them, or one after the other until the
    outcome is settled, if the gate has a rule for that. A first call without completion opens the gate. Prompts that
    the gate does not know are always called.

    Parameters
    ----------
    gate : Gate
        Of prompts.
    items : mapping of item to mapping of signal to value
        The gate's signals of the items; those of the call itself (``verdict``, ``judge``, ``order``) are known.

    Raises
    ------
    InputError
        When the gate has other voters than prompts, or needs soft verdicts.
    """

    def __init__(self, gate: Gate, items: Mapping[str, Mapping[str, Any]]) -> None:
        if gate.voters != PROMPT:
            raise InputError(
                f"the gate stands before {gate.voters!r}",
                place="gate",
                remedy="train one on a table whose column of wordings is called prompt (voters='prompt')",
            )
        soft = [one.name for one in gate.signals if one.name.startswith("soft ")]
        if soft:
            raise InputError("the gate needs soft verdicts", place="gate", remedy="train one without 'soft'")
        self._gate, self._items = gate, items
        self._place = {gate.first: 0} | {name: index for index, name in enumerate(gate.others, 1)}
        self._code = {label: code for code, label in enumerate(gate.classes)}
        self._votes: dict[tuple[str, str, str, int], dict[int, int]] = {}
        self._open: dict[tuple[str, str, str, int], bool] = {}

    def observe(self, call: PlannedCall, outcome: Ended) -> None:
        """Take note of a verdict."""
        place = self._place.get(call.prompt)
        if place is None:
            return
        case = (call.judge, call.item, call.order, call.repeat)
        said = BOTTOM if outcome.status == "invalid" and self._gate.invalid == "class" else outcome.verdict
        self._votes.setdefault(case, {})[place] = CODE_MISSING if said is None else self._code.get(said, CODE_MISSING)
        if place == 0:
            self._open[case] = said is None or self._opens(call, said)

    def wanted(self, call: PlannedCall) -> Literal["", "gate", "undecided"]:
        """``""`` to call, ``"gate"`` not to, ``"undecided"`` while a verdict that decides is still out."""
        place = self._place.get(call.prompt, 0)
        if place == 0:
            return ""
        case = (call.judge, call.item, call.order, call.repeat)
        if case not in self._open:
            return "undecided"
        if not self._open[case]:
            return "gate"
        votes, rule = self._votes[case], self._gate.stop
        if rule is None:
            return ""
        if any(earlier not in votes for earlier in range(place)):
            return "undecided"
        cast = np.array([code for code in votes.values() if code >= 0], dtype=np.int64)
        counts = np.bincount(cast, minlength=len(self._code)).astype(float)
        return "gate" if settled(counts, rule=rule, n_voters=len(self._place), asked=len(votes)) else ""

    def _opens(self, call: PlannedCall, said: str) -> bool:
        known: dict[str, Any] = {VERDICT: said, "judge": call.judge, "order": call.order}
        here = self._items.get(call.item, {})
        values = {}
        for one in self._gate.signals:
            if one.name not in known and one.name not in here:
                raise InputError(
                    f"item {call.item!r} has no signal {one.name!r}", place="gate", remedy="give every item one"
                )
            values[one.name] = np.array([here.get(one.name, known.get(one.name))], dtype=object)
        return bool(self._gate.opens(values)[0])
