"""``[stop]`` while calls are made: looks at items in their fixed order, and wants no more of them once it knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secondorder._audit._cube import design_grid
from secondorder._audit._stop_rule import StopRule, rule_of_manifest
from secondorder._schema import BOTTOM, CODE_MISSING, JUDGE, ORDER, REPEAT
from secondorder.acquire import Call, Outcome, is_null

__all__ = ["StopPolicy"]


class StopPolicy:
    """Which calls a stop rule still wants; every judge is stopped on its own.

    Items that have begun are finished, so that no item is half called. The null block is not stopped.

    Parameters
    ----------
    manifest : mapping
        Of an audit with ``[stop]``.
    concurrency : mapping, optional
        Calls out at once, by judge. No item begins that is further behind the first unfinished one than it takes to
        keep four times as many calls at hand: else calls run ahead over many items while one waits for its retries,
        and are wasted once it decides.
    """

    def __init__(self, manifest: Mapping[str, Any], concurrency: Mapping[str, int] | None = None) -> None:
        grid = design_grid(manifest)
        self.rule: StopRule = rule_of_manifest(manifest)
        self._axes = self.rule.design.names
        self._level = {name: {label: k for k, label in enumerate(grid.labels[name])} for name in self._axes}
        self._levels_of = grid.levels_of
        self._code = {label: k for k, label in enumerate(grid.classes)} | {None: CODE_MISSING}
        repeats = len(grid.labels[REPEAT])
        self._shape = (*(len(grid.labels[name]) for name in self._axes), repeats)
        calls = math.prod(self._shape)
        most = {judge: math.ceil(4 * at_once / calls) + 1 for judge, at_once in (concurrency or {}).items()}
        self._judges = {judge: _Judge(self.rule, most.get(judge)) for judge in grid.labels[JUDGE]}
        # The first value takes a second to compile: before the first call, not between two.
        self.rule.values(np.zeros((1, *self._shape), dtype=np.int16))

    def observe(self, call: Call, outcome: Outcome) -> None:
        """Take note of a terminal outcome of the design."""
        if is_null(call.prompt) or outcome.status == "not_called":
            return
        judge = self._judges[call.judge]
        if call.item not in judge.open:
            judge.open[call.item] = np.full(self._shape, CODE_MISSING, dtype=np.int16)
            judge.left[call.item] = int(np.prod(self._shape))
            judge.begun.add(call.item)
        label = BOTTOM if outcome.status == "invalid" else outcome.verdict
        judge.open[call.item][self._place(call)] = self._code[label]
        judge.left[call.item] -= 1
        if not judge.left[call.item]:
            judge.end(call.item)

    def wanted(self, call: Call) -> Literal["", "stop_rule", "later"]:
        """``""`` to call; ``"stop_rule"`` once the rule has decided on the judge and the item has not begun.

        ``"later"`` where the item is too far behind the first one that is not finished.
        """
        if is_null(call.prompt):
            return ""
        judge = self._judges[call.judge]
        if judge.decided and call.item not in judge.begun:
            return "stop_rule"
        if call.item not in judge.begun and judge.ahead(call.item):
            return "later"
        judge.begun.add(call.item)
        return ""

    def _place(self, call: Call) -> tuple[int, ...]:
        levels = {**self._levels_of[call.prompt], ORDER: call.order}
        return (*(self._level[name][levels[name]] for name in self._axes), call.repeat)


class _Judge:
    """Items of one judge: those that are out, and the values of the first ones in the order of the rule."""

    def __init__(self, rule: StopRule, most: int | None) -> None:
        self.rule = rule
        self._most = len(rule.items) if most is None else most
        self._position = {item: k for k, item in enumerate(rule.items)}
        self.decided = False
        self.begun: set[str] = set()
        self.open: dict[str, NDArray[np.int16]] = {}
        self.left: dict[str, int] = {}
        self._ended: dict[str, float] = {}
        self._values: list[float] = []
        self._next_look = 1

    def ahead(self, item: str) -> bool:
        """Whether an item is too far behind the first one that is not finished to begin now."""
        return self._position[item] >= len(self._values) + self._most

    def end(self, item: str) -> None:
        """All calls of an item have ended."""
        self._ended[item] = float(self.rule.values(self.open[item][None])[0])
        items = self.rule.items
        while len(self._values) < len(items) and items[len(self._values)] in self._ended:
            self._values.append(self._ended.pop(items[len(self._values)]))
        # Looking costs as much as there are items: after every fiftieth part of them is soon enough.
        if not self.decided and len(self._values) >= self._next_look:
            self._next_look = len(self._values) + max(1, len(self._values) // 50)
            self.decided = self.rule.decided(np.array(self._values))
