"""Which planned calls are still wanted: the limits of the spec, and policies (stop rules, gates) built above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from secondorder.acquire._reading import Completion
from secondorder.acquire._spec import JudgeSpec, LimitsSpec
from secondorder.acquire._types import Call, Outcome

__all__ = ["LATER", "UNDECIDED", "Admission", "Policy"]

Unwanted = Literal["", "stop_rule", "gate", "undecided", "later"]
UNDECIDED = "undecided"
LATER = "later"


class Policy(Protocol):
    """Outcomes so far in, calls still wanted out.

    A policy is told every terminal outcome, those of earlier runs first and in call order, and asked before each call
    is announced. It may answer that this is not decided yet, and is asked again once further calls of that judge have
    ended; what it waits for must be calls of the same judge and item. That needs ``send = "by-item"``: in any other
    order most of the design would wait. ``"later"`` is asked again likewise, and nothing that comes after such a call
    is looked at before: for a policy that wants few items under way at once.
    """

    def observe(self, call: Call, outcome: Outcome) -> None:
        """Take note of a terminal outcome."""

    def wanted(self, call: Call) -> Unwanted:
        """``""`` to call, ``"undecided"`` to be asked again; else why not: the call ends as ``not_called``."""


class Admission:
    """Limits and policy of one run, over all its judges.

    Parameters
    ----------
    judges : mapping
        For their prices.
    limits : LimitsSpec
        Of the spec.
    policy : Policy or None
        Stop rule or gate.
    usage : mapping
        Per judge: calls sent, prompt and completion tokens in earlier runs.
    """

    def __init__(
        self,
        judges: Mapping[str, JudgeSpec],
        limits: LimitsSpec,
        policy: Policy | None,
        usage: Mapping[str, tuple[int, int, int]],
    ) -> None:
        self._prices = {name: judge.price for name, judge in judges.items()}
        self._limits = limits
        self._policy = policy
        self._sent = 0
        self._cost_usd = 0.0
        for judge, (sent, prompt, completion) in usage.items():
            self._sent += sent
            self._spend(judge, prompt, completion)

    def admit(self, call: Call, *, sent_before: bool, now: bool = False) -> str:
        """``""`` when the call is to be sent (and counted), :data:`UNDECIDED`, :data:`LATER`, or why it is not called.

        With `now` the policy's :data:`LATER` does not count.
        """
        limits = self._limits
        if limits.cost_usd is not None and self._cost_usd >= limits.cost_usd:
            return "limit"
        if not sent_before and limits.calls is not None and self._sent >= limits.calls:
            return "limit"
        reason = "" if self._policy is None or call.warmup else self._policy.wanted(call)
        if reason == LATER and now:
            reason = ""
        if not reason and not sent_before:
            self._sent += 1
        return reason

    def observe(self, call: Call, outcome: Outcome) -> None:
        """Pass a terminal outcome on to the policy; warm-ups are outside the design."""
        if self._policy is not None and not call.warmup:
            self._policy.observe(call, outcome)

    def pay(self, judge: str, completion: Completion) -> None:
        """Add the cost of an answer."""
        self._spend(judge, completion.prompt_tokens or 0, completion.completion_tokens or 0)

    def _spend(self, judge: str, prompt: int, completion: int) -> None:
        price = self._prices.get(judge)
        if price is not None:
            self._cost_usd += (prompt * price.input + completion * price.output) / 1e6
