"""``audit.toml`` as frozen structures: field names are the keys of the file, defaults are the file's defaults.

The structures say what is written; :mod:`secondorder.acquire._load` reads a file into them, and
:mod:`secondorder.acquire._rules` says what the fields must satisfy together. No field ever holds a secret.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

__all__ = [
    "AnalysisSpec",
    "AuditSpec",
    "DesignSpec",
    "GateSpec",
    "InvalidScore",
    "ItemsSpec",
    "JudgeSpec",
    "LimitsSpec",
    "MessageSpec",
    "NullSpec",
    "PriceSpec",
    "PromptsSpec",
    "RetrySpec",
    "SoftSpec",
    "StopSpec",
    "VariantSpec",
    "VariantVerdictSpec",
    "VerdictSpec",
]

Name = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]

Endpoint = Literal["openai-chat", "openai-responses", "anthropic-messages", "decisions"]
Flavour = Literal["generic", "vllm", "llama.cpp"]
Order = Literal["AB", "BA"]
Wrapper = Literal["none", "upper", "title", "brackets", "xml", "markdown"]
Truncated = Literal["invalid", "parse"]


class _Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every table of the file shares: immutable, no unknown keys."""


class PriceSpec(_Spec, frozen=True):
    """USD per million tokens; only for the cost estimate and ``limits.cost_usd``."""

    input: Amount
    output: Amount


class SoftSpec(_Spec, frozen=True):
    """``soft`` of a judge: verdicts as the probabilities of the token that says them, not as the token drawn.

    Attributes
    ----------
    token : {"verdict", "first"}
        ``verdict``: the one token in which the parser finds the verdict of the sampled answer. ``first``: the contract
        under which the first token is the whole verdict; then the probabilities are the law itself.
    top_logprobs : int
        How many tokens the server is asked to list.
    processed : bool
        The declaration that the server lists the law that it samples from, with temperature and every cut applied.
    """

    token: Literal["verdict", "first"]
    top_logprobs: Annotated[int, msgspec.Meta(ge=1, le=2**16)] = 20
    processed: bool = False


class JudgeSpec(_Spec, frozen=True):
    """``[judges.NAME]``: where the judge is and what is sent to it.

    Attributes
    ----------
    key_env : str or None
        The *name* of the environment variable that holds the key.
    body : dict
        Sampling fields, sent as written.
    seeds : bool or None
        Whether a seed is sent with every call. None only before loading: the endpoint decides (chat endpoints take
        one).
    concurrency : int
        Calls in flight at once.
    requests_per_minute : float or None
        Cap on the rate of sends; None: no cap.
    timeout_s : float
        Seconds after which an attempt counts as a timeout (no completion).
    soft : SoftSpec or None
        Ask for log-probabilities and read soft verdicts off them; None: verdicts are those of the texts.
    note : str
        Frozen into the manifest, never sent.
    """

    endpoint: Endpoint
    base_url: Name
    model: Name
    flavour: Flavour = "generic"
    transport: Literal["direct", "batch"] = "direct"
    key_env: Name | None = None
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    seeds: bool | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 32
    requests_per_minute: Positive | None = None
    timeout_s: Positive = 600.0
    price: PriceSpec | None = None
    soft: SoftSpec | None = None
    note: str = ""


class ItemsSpec(_Spec, frozen=True):
    """``[items]``: the file of items and the names of its fields."""

    file: Name
    id: Name | Annotated[list[Name], msgspec.Meta(min_length=1)]
    stratum: Name | None = None
    gold: Name | None = None
    pair: tuple[Name, Name] | None = None
    per_stratum: Count | None = None
    limit: Count | None = None


class MessageSpec(_Spec, frozen=True):
    """One chat message; `content` is a template."""

    role: Name
    content: str


class VariantVerdictSpec(_Spec, frozen=True):
    """What one wording's verdict contract changes; a key left out is inherited from ``[verdict]``.

    Naming a `parser` starts that parser's own keys (labels, pattern, field, range) afresh.
    """

    parser: Name | None = None
    labels: dict[str, str] | None = None
    classes: Annotated[list[Name], msgspec.Meta(min_length=1)] | None = None
    pattern: Name | None = None
    field: Name | None = None
    range: tuple[float, float] | None = None
    truncated: Truncated | None = None


class VariantSpec(_Spec, frozen=True):
    """``[[prompts.variants]]``: one explicit wording.

    Attributes
    ----------
    levels : dict of str to str
        Facets that replace the facet ``prompt``; over all variants they must be fully crossed.
    """

    id: Name
    user: str | None = None
    system: str | None = None
    messages: list[MessageSpec] | None = None
    levels: dict[str, Name] = {}
    verdict: VariantVerdictSpec | None = None


class PromptsSpec(_Spec, frozen=True):
    """``[prompts]``: a census of formats of one template, or explicit variants."""

    policy: Literal["fixed", "random"] = "fixed"
    criterion: str = ""
    census: list[Wrapper] = []
    system: str = ""
    user: str | None = None
    messages: list[MessageSpec] | None = None
    variants: list[VariantSpec] = []
    weights: dict[str, float] | None = None


class DesignSpec(_Spec, frozen=True):
    """``[design]``: orders of the two candidates, repeats per cell, order of sending."""

    repeats: Count
    orders: list[Order] = []
    send: Literal["shuffled", "by-item", "by-cell"] = "shuffled"


class VerdictSpec(_Spec, frozen=True):
    """``[verdict]``: how an answer's text becomes one of the classes, or ⊥."""

    parser: Name
    classes: Annotated[list[Name], msgspec.Meta(min_length=1)]
    labels: dict[str, str] = {}
    pattern: Name | None = None
    field: Name | None = None
    range: tuple[float, float] | None = None
    truncated: Truncated = "invalid"


class RetrySpec(_Spec, frozen=True):
    """``[retry]``: attempts and time after which a call without completion is missing."""

    attempts: Count = 6
    give_up_after_s: Positive = 3600.0


class LimitsSpec(_Spec, frozen=True):
    """``[limits]``: reaching one stops the run and keeps everything; None: no limit."""

    calls: Count | None = None
    cost_usd: Positive | None = None


class NullSpec(_Spec, frozen=True):
    """``[null]``: hidden ids on otherwise identical calls, so that the true prompt effect is zero."""

    items: Count
    ids: Annotated[int, msgspec.Meta(ge=2, le=2**16)]


class StopSpec(_Spec, frozen=True):
    """``[stop]``: anytime-valid stopping on one component."""

    component: Name
    tau: Amount
    alpha: Share = 0.05


class GateSpec(_Spec, frozen=True):
    """``[gate]``: the first wording's verdict decides whether the others are asked.

    Attributes
    ----------
    file : str
        A gate that ``secondorder study gate --save`` wrote, relative to ``audit.toml``.
    content : dict
        What the file holds; filled when the audit is loaded, so that the manifest says which gate it was.
    """

    file: Name
    content: dict[str, Any] = {}


class InvalidScore(_Spec, frozen=True):
    """⊥ at a declared score, with an added penalty (interval kernel)."""

    score: float
    penalty: Amount


class AnalysisSpec(_Spec, frozen=True):
    """``[analysis]``: frozen before the first call. `kernel` is None only before loading."""

    kernel: Literal["nominal", "ordinal", "interval"] | None = None
    scores: dict[str, float] | None = None
    invalid: Literal["class", "missing", "midpoint"] | InvalidScore = "class"
    pairs: Literal["complete", "across-repeats", "panel"] = "complete"
    tau: Amount | None = None
    level: Share = 0.95
    draws: Count = 20000


class AuditSpec(_Spec, frozen=True):
    """A whole ``audit.toml`` with every default filled."""

    schema: Name
    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    judges: dict[str, JudgeSpec]
    items: ItemsSpec
    prompts: PromptsSpec
    design: DesignSpec
    verdict: VerdictSpec
    retry: RetrySpec = RetrySpec()
    limits: LimitsSpec = LimitsSpec()
    null: NullSpec | None = None
    stop: StopSpec | None = None
    gate: GateSpec | None = None
    analysis: AnalysisSpec = AnalysisSpec()
