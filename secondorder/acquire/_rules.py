"""What the tables of ``audit.toml`` must satisfy together. Each rule is one refusal: place, value, remedy."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from secondorder._design import standard_components
from secondorder._schema import BOTTOM, RESERVED_FACETS
from secondorder.acquire._contract import all_numbers, check_contract
from secondorder.acquire._endpoint import endpoint_of
from secondorder.acquire._facets import facet_levels, facet_weights
from secondorder.acquire._prompts import build_prompts
from secondorder.acquire._secrets import check_no_secret, looks_like_key
from secondorder.acquire._soft_rules import check_soft
from secondorder.acquire._spec import AuditSpec, InvalidScore, JudgeSpec
from secondorder.acquire._strict import shown
from secondorder.acquire._texts import as_number
from secondorder.errors import SpecError

__all__ = ["ITEM_FORMATS", "check_spec"]

ITEM_FORMATS = (".jsonl", ".csv", ".tsv", ".parquet")

_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNED = ("model", "messages", "seed", "stream", "stream_options")


def check_spec(spec: AuditSpec, *, file: str = "audit.toml") -> None:
    """Check everything that can be known without reading the items.

    Raises
    ------
    SpecError
        On the first rule that does not hold.
    """
    if not spec.judges:
        raise SpecError("no judge is given", place=f"{file} [judges]", remedy="write a table [judges.NAME]")
    for name, judge in spec.judges.items():
        _check_judge(name, judge, f"{file} [judges.{name}]")
    for rule in _RULES:
        rule(spec, file)


def _check_judge(name: str, judge: JudgeSpec, place: str) -> None:
    if not name or not name.isprintable():
        raise SpecError(f"a judge is called {shown(name)}", place=place, remedy="give it a name")
    check_no_secret(judge, place)
    url = urlsplit(judge.base_url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise SpecError(
            f"base_url is {shown(judge.base_url)}", place=place, remedy="write it as http://host:port/v1 or https://…"
        )
    if url.username or url.password or any(looks_like_key(key) for key, _ in parse_qsl(url.query)):
        raise SpecError("base_url holds a key", place=place, remedy="name an environment variable in key_env")
    if judge.key_env is not None and not _ENV.fullmatch(judge.key_env):
        raise SpecError(
            "key_env is not the name of an environment variable",
            place=place,
            remedy='write the variable\'s name, as in key_env = "JUDGE_KEY", never the key',
        )
    for header, value in judge.headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header) or not value.isprintable():
            raise SpecError(f"header {shown(header)} cannot be sent", place=place, remedy="use plain printable text")
    _check_body(judge, place)
    if judge.flavour != "generic" and judge.endpoint != "openai-chat":
        raise SpecError(
            f"flavour is {shown(judge.flavour)} with endpoint = {shown(judge.endpoint)}",
            place=place,
            remedy='a flavour belongs to endpoint = "openai-chat"',
        )
    try:
        takes_seed = endpoint_of(judge).takes_seed
    except SpecError as error:
        raise SpecError(error.problem, place=place, remedy=error.remedy) from None
    if judge.seeds and not takes_seed:
        raise SpecError(
            f"seeds is true, and endpoint {shown(judge.endpoint)} takes none", place=place, remedy="leave seeds out"
        )


def _check_body(judge: JudgeSpec, place: str) -> None:
    for key in _OWNED:
        if key in judge.body:
            raise SpecError(
                f"body sets '{key}'", place=place, remedy="leave it out: the program sets it for every call"
            )
    if judge.body.get("n", 1) != 1:
        raise SpecError(
            f"body sets n = {shown(judge.body['n'])}",
            place=place,
            remedy="leave it out: repeats are separate calls with their own seeds (design.repeats)",
        )


def _check_items(spec: AuditSpec, file: str) -> None:
    items, place = spec.items, f"{file} [items]"
    if not items.file.lower().endswith(ITEM_FORMATS):
        raise SpecError(f"file is {shown(items.file)}", place=place, remedy=f"give one of {' '.join(ITEM_FORMATS)}")
    if isinstance(items.id, list) and len(set(items.id)) < len(items.id):
        raise SpecError(f"id names a field twice: {items.id}", place=place, remedy="name each field once")
    if items.pair is not None and items.pair[0] == items.pair[1]:
        raise SpecError(f"pair is {shown(items.pair[0])} twice", place=place, remedy="name two different fields")
    if items.per_stratum is not None and items.stratum is None:
        raise SpecError(
            f"per_stratum is {items.per_stratum}, and no stratum is named",
            place=place,
            remedy="name its field in stratum",
        )
    if items.per_stratum is not None and items.limit is not None:
        raise SpecError("per_stratum and limit are both given", place=place, remedy="keep one of them")


def _check_orders(spec: AuditSpec, file: str) -> None:
    design, place = spec.design, f"{file} [design]"
    if spec.items.pair is not None and not design.orders:
        raise SpecError("orders are missing", place=place, remedy='with items.pair write orders = ["AB", "BA"]')
    if spec.items.pair is None and design.orders:
        raise SpecError(
            f"orders are {design.orders}, and items.pair is not given",
            place=place,
            remedy="leave orders out, or name the two candidates in items.pair",
        )
    if len(set(design.orders)) < len(design.orders):
        raise SpecError(f"orders are {design.orders}", place=place, remedy="name each order once")


def _check_facets(spec: AuditSpec, file: str) -> None:
    for facet in facet_levels(spec):
        own = facet not in ("prompt", "order")
        taken = RESERVED_FACETS | {"judge", "prompt", "order"} if own else RESERVED_FACETS
        if own and (not facet or ":" in facet or facet in taken):
            raise SpecError(
                f"a facet is called {shown(facet)}",
                place=f"{file} [prompts.variants]",
                remedy=f"use a name without ':' other than {', '.join(sorted(taken))}",
            )
    if spec.prompts.policy == "random":
        if any(variant.levels for variant in spec.prompts.variants):
            raise SpecError(
                'levels are given with policy = "random"',
                place=f"{file} [prompts]",
                remedy='declared levels are a fixed census: write policy = "fixed"',
            )
        if len(facet_levels(spec)["prompt"]) < 2:
            raise SpecError(
                'policy is "random" with one prompt', place=f"{file} [prompts]", remedy="a sample needs at least two"
            )


def _check_verdicts(spec: AuditSpec, file: str) -> None:
    pairwise = spec.items.pair is not None
    check_contract(spec.verdict, pairwise=pairwise, place=f"{file} [verdict]")
    for number, prompt in enumerate(build_prompts(spec, file=file), 1):
        if prompt.verdict == spec.verdict:
            continue
        place = f"{file} [prompts.variants {number}.verdict]"
        for name in prompt.verdict.classes:
            if name not in spec.verdict.classes:
                raise SpecError(
                    f"class {shown(name)} is not among verdict.classes",
                    place=place,
                    remedy="[verdict] classes lists the classes of all wordings",
                )
        check_contract(prompt.verdict, pairwise=pairwise, place=place)
    facet_weights(spec, file=file)


def _check_null(spec: AuditSpec, file: str) -> None:
    if spec.null is not None and spec.design.repeats < 2:
        raise SpecError(
            f"repeats is {spec.design.repeats} with [null]",
            place=f"{file} [design]",
            remedy="the null arm is estimated from pairs of different repeats: write repeats = 2 or more",
        )


def _check_stop(spec: AuditSpec, file: str) -> None:
    stop, place = spec.stop, f"{file} [stop]"
    if stop is None:
        return
    if spec.design.send != "by-item":
        raise SpecError(
            f"[stop] is given with send = {shown(spec.design.send)}",
            place=f"{file} [design]",
            remedy='stopping counts whole items: write send = "by-item"',
        )
    if spec.design.repeats < 2:
        raise SpecError(
            f"repeats is {spec.design.repeats} with [stop]",
            place=f"{file} [design]",
            remedy="components are debiased from two calls per cell on: write repeats = 2 or more",
        )
    facets = [facet for facet, levels in facet_levels(spec).items() if len(levels) > 1]
    known = [component.name for component in standard_components(facets)] if facets else ["call"]
    if stop.component not in known:
        raise SpecError(f"component is {shown(stop.component)}", place=place, remedy=f"say one of {', '.join(known)}")


def _check_gate(spec: AuditSpec, file: str) -> None:
    gate, place = spec.gate, f"{file} [gate]"
    if gate is None:
        return
    if spec.design.send != "by-item":
        raise SpecError(
            f"[gate] is given with send = {shown(spec.design.send)}",
            place=f"{file} [design]",
            remedy='the other calls of an item wait for its first verdict: write send = "by-item"',
        )
    if spec.stop is not None:
        raise SpecError(
            "[gate] and [stop] are both given",
            place=place,
            remedy="keep one of them: what is called behind a gate depends on the verdicts",
        )
    prompts = [prompt.id for prompt in build_prompts(spec, file=file)]
    wanted = [gate.content.get("first"), *gate.content.get("others", [])]
    if sorted(map(str, wanted)) != sorted(prompts) or gate.content.get("voters") != "prompt":
        raise SpecError(
            f"the gate stands before {', '.join(map(str, wanted))}",
            place=place,
            remedy=f"it must know the prompts of this audit: {', '.join(prompts)}",
        )
    known = [name for name in gate.content.get("classes", []) if name != BOTTOM]
    if sorted(known) != sorted(spec.verdict.classes):
        raise SpecError(
            f"the gate knows the classes {', '.join(known)}",
            place=place,
            remedy=f"it must know those of this audit: {', '.join(spec.verdict.classes)}",
        )
    if spec.items.stratum is None and any(signal["name"] == "stratum" for signal in gate.content["signals"]):
        raise SpecError("the gate looks at the stratum", place=f"{file} [items]", remedy="name its field in stratum")


def _check_analysis(spec: AuditSpec, file: str) -> None:
    analysis, place = spec.analysis, f"{file} [analysis]"
    classes = spec.verdict.classes
    if analysis.kernel is None and all_numbers(classes):
        raise SpecError(
            "kernel is missing, and all classes are numbers",
            place=place,
            remedy="say whether they are names, ranks or amounts: nominal, ordinal or interval",
        )
    numeric = analysis.kernel == "interval"
    if analysis.scores is not None:
        if not numeric:
            raise SpecError(
                f"scores are given with kernel = {shown(analysis.kernel or 'nominal')}",
                place=place,
                remedy='scores belong to kernel = "interval"',
            )
        for name in (*analysis.scores, *classes):
            if name not in classes or name not in analysis.scores:
                wrong = f"scores name {shown(name)}" if name not in classes else f"class {shown(name)} has no score"
                raise SpecError(wrong, place=place, remedy=f"give one score to each of {', '.join(classes)}")
    elif numeric and not all_numbers(classes):
        name = next(name for name in classes if as_number(name) is None)
        raise SpecError(
            f'class {shown(name)} is no number with kernel = "interval"',
            place=place,
            remedy="give scores = { … }, or another kernel",
        )
    _check_invalid(analysis.invalid, numeric, place)
    if analysis.pairs != "complete" and spec.design.repeats < 2:
        raise SpecError(
            f"pairs is {shown(analysis.pairs)} with repeats = {spec.design.repeats}",
            place=place,
            remedy="these pairs need repeats = 2 or more",
        )


def _check_invalid(invalid: str | InvalidScore, numeric: bool, place: str) -> None:
    if numeric and invalid == "class":
        raise SpecError(
            'invalid is "class" with kernel = "interval", where ⊥ has no score',
            place=place,
            remedy='say before the first call what it means: "missing", "midpoint" or { score = …, penalty = … }',
        )
    if not numeric and invalid not in ("class", "missing"):
        kind = shown(invalid) if isinstance(invalid, str) else "a score"
        raise SpecError(
            f"invalid is {kind}, and the kernel has no scores", place=place, remedy='say "class" or "missing"'
        )


_RULES = (
    _check_items,
    _check_orders,
    _check_verdicts,
    _check_facets,
    _check_null,
    _check_stop,
    _check_gate,
    _check_analysis,
    check_soft,
)
