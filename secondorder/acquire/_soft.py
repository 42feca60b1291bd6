"""Soft verdicts: from the log-probabilities of one token of an answer to probabilities of the classes.

The token is found where the frozen parser finds the verdict. Every token that the server lists at that place is put in
the place of the one that was drawn, and the parser says what the answer would then mean. Whatever is not listed is ⊥,
and no most probable token takes the place of the others. Where this cannot be done the call has no soft verdict, with
the reason why; its hard verdict does not fill in.

Listed tokens that mean no class are ⊥ where the first token is read, of every answer alike. Behind a sampled reason the
token is read of valid answers alone, while an invalid one is ⊥ as a whole. There the vector is the law given that the
token says a verdict: with the mass of the other tokens in it, too, ⊥ would be counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from secondorder.acquire._contract import complete
from secondorder.acquire._endpoint import endpoint_of
from secondorder.acquire._places import make_places
from secondorder.acquire._plan import is_null
from secondorder.acquire._prompts import build_prompts
from secondorder.acquire._reading import Completion
from secondorder.acquire._spec import AuditSpec, VerdictSpec
from secondorder.acquire._texts import SPACE
from secondorder.acquire._types import Call, Outcome, SoftVerdict
from secondorder.acquire._verdict import make_reader

__all__ = ["SoftReader", "make_soft"]

SoftReader = Callable[[Call, Outcome, Completion, bytes], SoftVerdict]
"""``read(call, outcome, completion, body)``: the soft verdict of a completed call of a judge with ``soft``."""

ROUNDING = 1e-3
"""How far above one a list may sum because the server rounds what it prints."""

NOTHING = 1e-12
"""Unlisted mass that is the rounding of a sum."""

CERTAIN = 0.99
"""Probability from which what stands hidden before an answer is the same in all calls: the marks of an empty reason."""

LEAST = -1e4
"""A log-probability below it is that of zero, however many digits it has."""

SHORT = 64
"""Characters of a text that is worth remembering."""

WORD_MARK = "▁".encode()
"""The space before a word in the vocabulary of SentencePiece; servers that name tokens raw write it."""

INVALID = SoftVerdict()


def make_soft(spec: AuditSpec) -> SoftReader:
    r"""The reader of soft verdicts of an audit.

    Examples
    --------
    >>> from secondorder.acquire._load import parse_spec
    >>> from secondorder.acquire._starter import AUDIT_TOML
    >>> text = AUDIT_TOML.replace("[judges.mine]", '[judges.mine]\nsoft = { token = "first" }')
    >>> read = make_soft(parse_spec(text))
    >>> call = Call("", 0, "mine", "1", "none", "BA", 0, False, 7, b"", "")
    >>> body = b'''{"choices": [{"logprobs": {"content": [{"token": "A", "logprob": -0.6, "top_logprobs": [
    ...     {"token": "A", "logprob": -0.693147}, {"token": " B", "logprob": -1.386294},
    ...     {"token": "Both", "logprob": -2.302585}]}]}}]}'''
    >>> soft = read(call, Outcome("valid", "", "2"), Completion(text="A"), body)
    >>> {name: round(p, 3) for name, p in soft.probabilities.items()}, round(soft.unlisted, 3)
    ({'2': 0.5, '1': 0.25}, 0.15)
    """
    prompts = build_prompts(spec)
    wordings = {prompt.id: _Wording(complete(prompt.verdict)) for prompt in prompts}
    first = wordings[prompts[0].id]

    def read(call: Call, outcome: Outcome, completion: Completion, body: bytes) -> SoftVerdict:
        judge = spec.judges[call.judge]
        assert judge.soft is not None
        at_first = judge.soft.token == "first"
        if completion.bottom or (outcome.status == "invalid" and not at_first):
            # A completed answer without a verdict is ⊥ with certainty: there is no token whose law could be read.
            return INVALID
        endpoint = endpoint_of(judge)
        answer = _Answer.of(completion.text, endpoint.logprobs(body) if endpoint.logprobs else [])
        if isinstance(answer, str):
            return SoftVerdict(reason=answer)
        wording = first if is_null(call.prompt) else wordings[call.prompt]
        found = answer.first() if at_first else answer.only(wording.places(completion.text))
        if found is None:
            return INVALID
        if isinstance(found, str):
            return SoftVerdict(reason=found)
        finish = "stop" if at_first else completion.finish_reason
        soft = _probabilities(found, lambda text: wording.verdict_of(text, finish, call.order))
        return soft if at_first or soft.reason else _given_valid(soft)

    return read


class _Wording:
    """What a wording's contract makes of a text, remembered for short ones: the same few tokens are listed always."""

    def __init__(self, verdict: VerdictSpec) -> None:
        self._read = make_reader(verdict)
        self._short = lru_cache(maxsize=4096)(self._verdict_of)
        self.places = make_places(verdict)

    def verdict_of(self, text: str, finish_reason: str, order: str) -> str | None:
        """Class of a text, None for ⊥."""
        return (self._short if len(text) <= SHORT else self._verdict_of)(text, finish_reason, order)

    def _verdict_of(self, text: str, finish_reason: str, order: str) -> str | None:
        return self._read(text, finish_reason, order).verdict


class _Slot(NamedTuple):
    """One token of an answer with what stands before and behind it, and what is listed in its place."""

    before: bytes
    behind: bytes
    entry: Any
    raw: bool


class _Answer(NamedTuple):
    """The visible text of an answer and its tokens, laid over each other."""

    text: bytes
    entries: list[Any]
    spelled: list[bytes]
    start: int
    raw: bool

    @classmethod
    def of(cls, text: str, entries: list[Any]) -> _Answer | str:
        """Lay the tokens over the text, or say why not."""
        if not entries:
            return "no_logprobs"
        spelled = [_spelling(entry) for entry in entries]
        if any(piece is None for piece in spelled):
            return "bad_logprobs"
        pieces = [piece for piece in spelled if piece is not None]
        data = text.encode("utf-8", "replace")
        if not text.strip(SPACE):
            return cls(data, entries, pieces, 0, False)
        for raw in (False, True):
            pieces = [piece.replace(WORD_MARK, b" ") for piece in pieces] if raw else pieces
            joined = b"".join(pieces)
            # Hidden reasoning may stand before the text, and one token or two behind it that end the turn.
            for dropped in range(min(3, len(pieces))):
                kept = joined[: len(joined) - sum(map(len, pieces[len(pieces) - dropped :]))] if dropped else joined
                if kept.endswith(data):
                    return cls(data, entries, pieces, len(data) - len(kept), raw)
        return "unaligned"

    def first(self) -> _Slot | str | None:
        """The slot in which the visible text begins, as if it ended there; None where nothing visible was said."""
        if not self.text.strip():
            # The one token that ends the turn stands where the verdict would.
            return _Slot(b"", b"", self.entries[0], self.raw) if len(self.entries) == 1 else None
        at, hidden = self.start, list[Any]()
        for entry, piece in zip(self.entries, self.spelled, strict=True):
            at += len(piece)
            if at > 0:
                # Behind hidden tokens that were sampled, it is the law after these, and not that of the cell.
                same = math.fsum(map(_logprob, hidden)) >= math.log(CERTAIN)
                return _Slot(b"", b"", entry, self.raw) if same else "not_first"
            hidden.append(entry)
        return "unaligned"

    def only(self, places: list[tuple[int, int]]) -> _Slot | str:
        """The slot of the one place where the verdict is said, if it is one token."""
        if len(places) != 1:
            return "several_places"
        text = self.text.decode()
        begin, end = (len(text[:mark].encode()) for mark in places[0])
        at, found = self.start, []
        for entry, piece in zip(self.entries, self.spelled, strict=True):
            stop = at + len(piece)
            if at < end and stop > begin:
                found.append(_Slot(self.text[: max(at, 0)], self.text[stop:], entry, self.raw))
            at = stop
        return found[0] if len(found) == 1 else "several_tokens"


def _probabilities(slot: _Slot, verdict_of: Callable[[str], str | None]) -> SoftVerdict:
    listed = _listed(slot.entry)
    if isinstance(listed, str):
        return SoftVerdict(reason=listed)
    total = math.fsum(p for _, p in listed)
    if total > 1.0 + ROUNDING:
        return SoftVerdict(reason="bad_logprobs")
    # Above one by the rounding of print alone; below one the rest is not known, and is never shared out.
    scale = 1.0 / max(total, 1.0)
    found: dict[str, list[float]] = {}
    for token, p in listed:
        said = token.replace(WORD_MARK, b" ") if slot.raw else token
        verdict = verdict_of((slot.before + said + slot.behind).decode("utf-8", "replace"))
        if verdict is not None:
            found.setdefault(verdict, []).append(p * scale)
    masses = {verdict: math.fsum(parts) for verdict, parts in found.items()}
    if not math.fsum(masses.values()) > 0.0:
        return SoftVerdict(reason="no_verdict_token")
    unlisted = 1.0 - total
    return SoftVerdict(masses, unlisted if unlisted > NOTHING else 0.0)


def _given_valid(soft: SoftVerdict) -> SoftVerdict:
    """The law given that the token says a verdict; one that is not listed may have said one."""
    whole = math.fsum([*soft.probabilities.values(), soft.unlisted])
    return SoftVerdict({verdict: p / whole for verdict, p in soft.probabilities.items()}, soft.unlisted / whole)


def _spelling(entry: Any) -> bytes | None:
    """Bytes of a token: as the server lists them, else those of its name."""
    if not isinstance(entry, dict):
        return None
    listed, name = entry.get("bytes"), entry.get("token")
    if isinstance(listed, list):
        try:
            return bytes(listed)
        except (TypeError, ValueError):
            return None
    return name.encode("utf-8", "replace") if isinstance(name, str) else None


def _logprob(entry: Any) -> float:
    """Of the token that was sampled; that of nothing where the server does not say."""
    value = entry.get("logprob")
    return float(max(value, LEAST)) if isinstance(value, int | float) and value <= ROUNDING else LEAST


def _listed(entry: Any) -> list[tuple[bytes, float]] | str:
    """Tokens listed at one place with their probabilities; the drawn one is no more than the list says it is."""
    raw = entry.get("top_logprobs")
    if not raw:
        return "no_logprobs"
    if not isinstance(raw, list):
        return "bad_logprobs"
    found = []
    for each in raw:
        spelled, value = _spelling(each), each.get("logprob") if isinstance(each, dict) else None
        if spelled is None or not isinstance(value, int | float) or isinstance(value, bool):
            return "bad_logprobs"
        if not value <= ROUNDING:  # NaN, too
            return "bad_logprobs"
        found.append((spelled, math.exp(max(value, LEAST))))
    return found
