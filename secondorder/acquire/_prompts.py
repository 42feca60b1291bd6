"""Prompts: the template language, the wordings of an audit, and the messages that are sent for an item.

``{{name}}`` is replaced once, by the item's field of that name, the criterion, or one of the two candidates; inserted
text is never expanded again, and single braces are ordinary text.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

import msgspec

from secondorder.acquire._census import WRAPPERS
from secondorder.acquire._contract import contract_of
from secondorder.acquire._spec import AuditSpec, MessageSpec, PromptsSpec, VerdictSpec
from secondorder.acquire._strict import shown
from secondorder.errors import SpecError

__all__ = ["NULL_PREFIX", "Prompt", "Template", "build_prompts", "fields_of", "parse_template", "render"]

NULL_PREFIX = "null/"
"""Prompt ids that begin so are hidden ids of the ``[null]`` block."""

CRITERION = "criterion"
CANDIDATES = ("first", "second")

_SLOT = re.compile(r"\{\{([^{}]*)\}\}")
_OPEN = re.compile(r"\{\{[ \t]*[^\W\d]\w{0,40}")
"""What looks like the beginning of a name, in the text between names."""

Template = tuple[str, ...]
"""Text, name, text, name, … text."""


class Prompt(msgspec.Struct, frozen=True):
    """One wording, ready to be filled with an item.

    Attributes
    ----------
    id : str
        Level of the facet ``prompt``; a census prompt is called after its wrapper.
    levels : dict of str to str
        Levels of the facets that replace ``prompt``, empty where none do.
    weight : float or None
        Declared weight; None: all equal.
    messages : tuple of (str, Template)
        Role and template of each message; the criterion is already inserted.
    inserted : str
        The criterion as it is inserted, wrapper included; empty where the template does not show it.
    verdict : VerdictSpec
        The wording's verdict contract as written (defaults not filled).
    """

    id: str
    levels: dict[str, str]
    weight: float | None
    messages: tuple[tuple[str, Template], ...]
    inserted: str
    verdict: VerdictSpec


def parse_template(text: str) -> Template:
    """Split a template into text and names, alternately.

    Examples
    --------
    >>> parse_template('{{input}} Answer {"winner": "A"}.')
    ('', 'input', ' Answer {"winner": "A"}.')
    """
    parts = _SLOT.split(text)
    parts[1::2] = [name.strip() for name in parts[1::2]]
    return tuple(parts)


def names_in(template: Template) -> tuple[str, ...]:
    """Names that a template shows, in order."""
    return template[1::2]


def fill(template: Template, values: Mapping[str, str]) -> str:
    """Replace every name once.

    Examples
    --------
    >>> fill(parse_template("{{a}} and {{b}}"), {"a": "{{b}}", "b": "B"})
    '{{b}} and B'
    """
    parts = list(template)
    parts[1::2] = [values[name] for name in template[1::2]]
    return "".join(parts)


def render(prompt: Prompt, values: Mapping[str, str]) -> list[dict[str, str]]:
    """Messages of one call: `values` are the item's fields, with ``first`` and ``second`` where there is a pair."""
    return [{"role": role, "content": fill(template, values)} for role, template in prompt.messages]


def fields_of(prompts: Sequence[Prompt], *, pairwise: bool) -> frozenset[str]:
    """Item fields that the prompts show (the candidates' fields are named by ``items.pair``)."""
    names = {name for prompt in prompts for _, template in prompt.messages for name in names_in(template)}
    return frozenset(names - set(CANDIDATES if pairwise else ()))


def build_prompts(spec: AuditSpec, *, file: str = "audit.toml") -> tuple[Prompt, ...]:
    """The wordings of an audit, checked.

    Raises
    ------
    SpecError
        Naming the table, the value and the remedy.
    """
    prompts = spec.prompts
    place = f"{file} [prompts]"
    pair = spec.items.pair
    if prompts.variants and prompts.census:
        raise SpecError("census and variants are both given", place=place, remedy="keep one of them")
    built = _variants(spec, file) if prompts.variants else _census(spec, place)
    ids = [prompt.id for prompt in built]
    for name in ids:
        if ids.count(name) > 1:
            raise SpecError(f"prompt {shown(name)} stands twice", place=place, remedy="give each prompt its own id")
    for prompt in built:
        for _, template in prompt.messages:
            _check_names(names_in(template), pair, f"{file} [prompts], prompt {shown(prompt.id)}")
        if pair is not None:
            shown_names = {name for _, template in prompt.messages for name in names_in(template)}
            for name in CANDIDATES:
                if name not in shown_names:
                    raise SpecError(
                        f"prompt {shown(prompt.id)} does not show {{{{{name}}}}}",
                        place=place,
                        remedy="a pairwise prompt shows {{first}} and {{second}}",
                    )
    if prompts.criterion and not any(prompt.inserted for prompt in built):
        raise SpecError(
            "criterion is given, and no prompt shows {{criterion}}", place=place, remedy="show it, or leave it out"
        )
    _check_weights(prompts, ids, place)
    return tuple(
        msgspec.structs.replace(prompt, weight=prompts.weights[prompt.id]) if prompts.weights else prompt
        for prompt in built
    )


def _census(spec: AuditSpec, place: str) -> list[Prompt]:
    prompts = spec.prompts
    messages = _messages(prompts.system, prompts.user, prompts.messages, place)
    if not prompts.census:
        raise SpecError(
            "neither census nor variants are given", place=place, remedy='write census = ["none", "markdown"]'
        )
    if not prompts.criterion:
        raise SpecError("census is given without a criterion", place=place, remedy="the census formats the criterion")
    count = sum(names_in(parse_template(message.content)).count(CRITERION) for message in messages)
    if count != 1:
        raise SpecError(
            f"the template shows {{{{criterion}}}} {count} times", place=place, remedy="a census needs it exactly once"
        )
    return [
        _prompt(wrapper, {}, messages, WRAPPERS[wrapper](prompts.criterion), spec.verdict) for wrapper in prompts.census
    ]


def _variants(spec: AuditSpec, file: str) -> list[Prompt]:
    prompts = spec.prompts
    if prompts.user is not None or prompts.messages is not None:
        key = "user" if prompts.user is not None else "messages"
        raise SpecError(
            f"{key} is given beside variants", place=f"{file} [prompts]", remedy="write it into the variants"
        )
    found = []
    for number, variant in enumerate(prompts.variants, 1):
        place = f"{file} [prompts.variants {number}]"
        if variant.id.startswith(NULL_PREFIX):
            raise SpecError(
                f"id is {shown(variant.id)}", place=place, remedy=f"ids that begin with {NULL_PREFIX} are kept"
            )
        system = prompts.system if variant.system is None else variant.system
        messages = _messages(system, variant.user, variant.messages, place)
        verdict = contract_of(spec.verdict, variant.verdict)
        found.append(_prompt(variant.id, variant.levels, messages, prompts.criterion, verdict))
    _check_crossed([prompt.levels for prompt in found], f"{file} [prompts.variants]")
    return found


def _messages(system: str, user: str | None, messages: list[MessageSpec] | None, place: str) -> list[MessageSpec]:
    if (user is None) == (messages is None):
        wrong = "neither user nor messages are given" if user is None else "user and messages are both given"
        raise SpecError(wrong, place=place, remedy='write the template as user = "…", or as a list of messages')
    if messages is None:
        messages = [MessageSpec(role="user", content=user or "")]
    elif not messages:
        raise SpecError("messages is empty", place=place, remedy="write at least one message")
    messages = [MessageSpec(role="system", content=system), *messages] if system else messages
    for message in messages:
        for text in parse_template(message.content)[::2]:
            if found := _OPEN.search(text):
                raise SpecError(
                    f"{shown(found[0])} is not closed", place=place, remedy="write {{field}}; single braces are text"
                )
    return messages


def _prompt(
    name: str, levels: dict[str, str], messages: Sequence[MessageSpec], criterion: str, verdict: VerdictSpec
) -> Prompt:
    templates = [(message.role, parse_template(message.content)) for message in messages]
    used = bool(criterion) and any(CRITERION in names_in(template) for _, template in templates)
    if used:
        templates = [(role, _insert(template, criterion)) for role, template in templates]
    return Prompt(name, levels, None, tuple(templates), criterion if used else "", verdict)


def _insert(template: Template, criterion: str) -> Template:
    """Make the criterion part of the text around it."""
    parts = [template[0]]
    for name, text in zip(template[1::2], template[2::2], strict=True):
        if name == CRITERION:
            parts[-1] += criterion + text
        else:
            parts += [name, text]
    return tuple(parts)


def _check_names(names: Sequence[str], pair: tuple[str, str] | None, place: str) -> None:
    for name in names:
        if not name or name != "".join(char for char in name if char.isprintable()):
            raise SpecError(f"{{{{{name}}}}} is no name", place=place, remedy="write {{field}}; single braces are text")
        if pair is not None and name in pair and name not in CANDIDATES:
            raise SpecError(
                f"{{{{{name}}}}} is a candidate",
                place=place,
                remedy="show it by {{first}} or {{second}}: the order decides",
            )


def _check_crossed(levels: Sequence[Mapping[str, str]], place: str) -> None:
    names = list(levels[0])
    for number, found in enumerate(levels, 1):
        if set(found) != set(names):
            raise SpecError(
                f"levels of variant {number} are {sorted(found)}, those of variant 1 are {sorted(names)}",
                place=place,
                remedy="give every variant one level of each facet",
            )
    if not names:
        return
    choices = [list(dict.fromkeys(found[name] for found in levels)) for name in names]
    cells = [tuple(found[name] for name in names) for found in levels]
    for cell in cells:
        if cells.count(cell) > 1:
            raise SpecError(f"two variants have the levels {list(cell)}", place=place, remedy="cross the facets fully")
    for cell in itertools.product(*choices):
        if cell not in cells:
            raise SpecError(f"no variant has the levels {list(cell)}", place=place, remedy="cross the facets fully")


def _check_weights(prompts: PromptsSpec, ids: Sequence[str], place: str) -> None:
    weights = prompts.weights
    if weights is None:
        return
    if prompts.policy == "random":
        raise SpecError('weights are given with policy = "random"', place=place, remedy="a sample has equal weights")
    for name in (*weights, *ids):
        if name not in ids or name not in weights:
            wrong = f"weights name {shown(name)}" if name not in ids else f"prompt {shown(name)} has no weight"
            raise SpecError(wrong, place=place, remedy=f"give one weight to each of {', '.join(ids)}")
        if not weights[name] > 0:
            raise SpecError(
                f"weight of {shown(name)} is {weights[name]:g}", place=place, remedy="give a positive number"
            )
    total = math.fsum(weights.values())
    if abs(total - 1) > 1e-9:
        raise SpecError(f"weights sum to {total:.12g}", place=place, remedy="make them sum to 1")
