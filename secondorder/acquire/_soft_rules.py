"""What an audit must declare for soft verdicts: a law that the listed log-probabilities are those of, and one token."""

from __future__ import annotations

from itertools import permutations

from secondorder.acquire._contract import complete
from secondorder.acquire._endpoint import endpoint_of
from secondorder.acquire._places import PLACED
from secondorder.acquire._prompts import build_prompts
from secondorder.acquire._spec import AuditSpec, JudgeSpec, SoftSpec, VerdictSpec
from secondorder.acquire._strict import shown
from secondorder.acquire._texts import bare
from secondorder.errors import SpecError

__all__ = ["check_soft"]

NEUTRAL: dict[str, tuple[float, ...]] = {
    "temperature": (1,),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "typical_p": (1,),
    "repetition_penalty": (1,),
    "repeat_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "dynatemp_range": (0,),
    "dry_multiplier": (0,),
    "xtc_probability": (0,),
    "mirostat": (0,),
}
"""Values of sampling fields under which what is sampled is the law before them: what servers list, unless told."""

BENDING = (
    *("logit_bias", "grammar", "json_schema", "response_format", "structured_outputs", "min_tokens", "bad_words"),
    *("guided_json", "guided_regex", "guided_choice", "guided_grammar", "allowed_token_ids", "top_n_sigma", "samplers"),
    *("best_of", "use_beam_search", "ignore_eos", "logits_processors", "no_repeat_ngram_size", "tfs_z", "top_a"),
)
"""Fields that bend the law, whatever their value."""

FILLED = {
    "generic": ("temperature", "top_p"),
    "vllm": ("temperature", "top_p", "top_k", "min_p", "repetition_penalty"),
    "llama.cpp": ("temperature", "top_p", "top_k", "min_p", "repeat_penalty"),
}
"""Sampling fields that a server fills with values of its own where they are left out."""

LIMITS = ("max_tokens", "max_completion_tokens", "n_predict")


def check_soft(spec: AuditSpec, file: str) -> None:
    """Refuse soft verdicts that could not be read off the tokens, or would be those of another law.

    Raises
    ------
    SpecError
        On the first rule that does not hold.
    """
    found = {name: (judge, judge.soft) for name, judge in spec.judges.items() if judge.soft is not None}
    if not found:
        return
    contracts = [complete(prompt.verdict) for prompt in build_prompts(spec, file=file)]
    for contract in contracts:
        _check_contract(contract, f"{file} [verdict]")
    for name, (judge, soft) in found.items():
        place = f"{file} [judges.{name}]"
        _check_endpoint(judge, place)
        if not soft.processed:
            _check_law(judge, place)
        if any(judge.body.get(limit) == 1 for limit in LIMITS):
            _check_one_token(soft, contracts, place)
    if spec.analysis.invalid == "missing":
        raise SpecError(
            'invalid is "missing" with soft verdicts, which are spread over the classes: no call is ⊥ as a whole',
            place=f"{file} [analysis]",
            remedy='say what ⊥ means: "class", or under the interval kernel "midpoint" or { score = …, penalty = … }',
        )
    if spec.stop is not None:
        raise SpecError(
            "[stop] is given with soft verdicts",
            place=f"{file} [stop]",
            remedy="stopping looks at sampled verdicts: leave soft or [stop] out",
        )


def _check_endpoint(judge: JudgeSpec, place: str) -> None:
    endpoint = endpoint_of(judge)
    if endpoint.ask_logprobs is None:
        raise SpecError(
            f"soft is given, and endpoint {shown(judge.endpoint)} lists no log-probabilities",
            place=place,
            remedy="leave soft out",
        )
    for key in endpoint.ask_logprobs(1):
        if key in judge.body:
            raise SpecError(
                f"body sets '{key}' beside soft", place=place, remedy="leave it out: soft.top_logprobs says how many"
            )


def _check_law(judge: JudgeSpec, place: str) -> None:
    """Raw log-probabilities are those before temperature, cuts, penalties and grammars."""
    instead = "or say soft = { processed = true } where the server lists the law that it samples from"
    for key in BENDING:
        if key in judge.body:
            raise SpecError(
                f"body sets '{key}' with soft verdicts, and listed log-probabilities are those before it",
                place=place,
                remedy=f"leave it out, {instead}",
            )
    for key, values in NEUTRAL.items():
        written = f"{key} = {values[0]:.1f}" if isinstance(judge.body.get(key), float) else f"{key} = {values[0]}"
        if key in judge.body and (isinstance(judge.body[key], bool) or judge.body[key] not in values):
            raise SpecError(
                f"body sets {key} = {shown(judge.body[key])} with soft verdicts, and listed log-probabilities are "
                "those before it",
                place=place,
                remedy=f"write {written}, {instead}",
            )
        if key in FILLED[judge.flavour] and key not in judge.body:
            raise SpecError(
                f"body leaves {key} to the server with soft verdicts: what it samples may not be what it lists",
                place=place,
                remedy=f"send {written}, {instead}",
            )


def _check_one_token(soft: SoftSpec, contracts: list[VerdictSpec], place: str) -> None:
    if soft.token != "first":
        raise SpecError(
            'answers of one token with soft.token = "verdict", which reads no law off an answer that is ⊥',
            place=place,
            remedy='write soft = { token = "first" }',
        )
    if any(contract.truncated == "invalid" for contract in contracts):
        raise SpecError(
            "answers of one token are cut at the limit, and a cut answer is ⊥",
            place=place,
            remedy='write truncated = "parse" under [verdict]',
        )


def _check_contract(verdict: VerdictSpec, place: str) -> None:
    if verdict.parser not in PLACED:
        raise SpecError(
            f"parser is {shown(verdict.parser)} with soft verdicts: it does not say where in the answer the verdict is",
            place=place,
            remedy=f"say one of {', '.join(PLACED)}",
        )
    # The parsers label and last-line know no other words than the labels.
    numbers = [] if verdict.parser in ("label", "last-line") else verdict.classes
    meanings = {bare(word): meaning for word, meaning in [*zip(numbers, numbers, strict=True), *verdict.labels.items()]}
    for short, long in permutations(meanings, 2):
        if long.casefold().startswith(short.casefold()) and meanings[short] != meanings[long]:
            raise SpecError(
                f"label {shown(short)} begins label {shown(long)}, so a token that says the one may begin the other",
                place=place,
                remedy="with soft verdicts let no label begin another: letters, or a scale of single digits",
            )
