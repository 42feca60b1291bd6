"""What a valid spec leaves to chance or to the server: said before the first call, one line each."""

from __future__ import annotations

from secondorder.acquire._prompts import parse_template
from secondorder.acquire._spec import AuditSpec, JudgeSpec

__all__ = ["spec_warnings"]

_SAMPLING = {
    ("openai-chat", "generic"): ("temperature", "top_p", "max_tokens"),
    ("openai-chat", "vllm"): ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens"),
    ("openai-chat", "llama.cpp"): ("temperature", "top_p", "top_k", "min_p", "repeat_penalty", "max_tokens"),
    ("openai-responses", "generic"): ("temperature", "top_p", "max_output_tokens"),
    ("anthropic-messages", "generic"): ("max_tokens",),
}
"""Fields that a server fills with its own defaults, or the model's, when they are left out."""

_SAME = {"max_tokens": ("max_completion_tokens", "n_predict"), "repeat_penalty": ("repetition_penalty",)}


def spec_warnings(spec: AuditSpec, *, file: str = "audit.toml") -> list[str]:
    """Lines that a user should read before the first call.

    Examples
    --------
    >>> from secondorder.acquire._load import parse_spec
    >>> from secondorder.acquire._starter import AUDIT_TOML
    >>> spec_warnings(parse_spec(AUDIT_TOML))
    []
    """
    lines = [line for name, judge in spec.judges.items() for line in _judge(judge, f"{file} [judges.{name}]")]
    longest = {name: judge.body.get("max_tokens") for name, judge in spec.judges.items()}
    if spec.verdict.truncated == "invalid":
        lines += [
            f"{file} [judges.{name}]: max_tokens = 1 cuts every answer, and a cut answer is ⊥; "
            'write truncated = "parse" under [verdict]'
            for name, limit in longest.items()
            if limit == 1
        ]
    whole_law = all(judge.soft is not None and judge.soft.token == "first" for judge in spec.judges.values())
    if spec.design.repeats == 1 and not whole_law:
        lines.append(
            f"{file} [design]: repeats = 1 cannot tell call noise from the facets: no component can be debiased; "
            "write repeats = 2 or more"
        )
    if spec.prompts.policy == "random" and spec.prompts.census:
        lines.append(
            f'{file} [prompts]: policy = "random" takes the formats of the census as a sample; '
            'they are a full list: policy = "fixed" is meant'
        )
    names = parse_template(spec.prompts.criterion)[1::2]
    if names:
        lines.append(
            f"{file} [prompts]: the criterion holds {{{{{names[0]}}}}}, which is sent as it stands: "
            "inserted text is not expanded"
        )
    unsaid = [name for name in spec.verdict.classes if name not in _reachable(spec)]
    if unsaid and spec.verdict.labels:
        lines.append(f"{file} [verdict]: no label means {', '.join(unsaid)}: no call can get that class")
    return lines


def _reachable(spec: AuditSpec) -> set[str]:
    meanings = set(spec.verdict.labels.values())
    if "first" in meanings or "second" in meanings:
        meanings |= {"1", "2"}
    own = [variant.verdict for variant in spec.prompts.variants if variant.verdict is not None]
    return meanings.union(*([*(verdict.labels or {}).values(), *(verdict.classes or ())] for verdict in own))


def _judge(judge: JudgeSpec, place: str) -> list[str]:
    fields = _SAMPLING.get((judge.endpoint, judge.flavour), ())
    reasoning = any(field.startswith("reasoning") for field in judge.body)
    unset = [
        field
        for field in fields
        if field not in judge.body
        and not any(other in judge.body for other in _SAME.get(field, ()))
        and not (reasoning and field in ("temperature", "top_p"))
    ]
    lines = []
    if unset:
        lines.append(
            f"{place}: body leaves {', '.join(unset)} to the server: its defaults are then a hidden part of "
            "the judge; send them"
        )
    if judge.body.get("temperature") == 0:
        lines.append(f"{place}: temperature = 0 makes repeats near-copies: call noise is then that of the server alone")
    return lines
