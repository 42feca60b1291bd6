"""What was asked of a decomposition: frozen before the numbers, printed with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from secondorder._statistics._checked import check_draws, finite, whole
from secondorder._statistics._kernel import InvalidAs
from secondorder.errors import InputError

__all__ = ["COVERS", "METHODS", "PAIRS", "Covers", "Method", "Pairs", "Settings", "one_of"]

Pairs = Literal["complete", "across-repeats", "panel"]
Covers = Literal["items", "calls", "prompts", "items+prompts"]
Method = Literal["t", "percentile", "bca", "studentised"]

PAIRS: tuple[Pairs, ...] = ("complete", "across-repeats", "panel")
COVERS: tuple[Covers, ...] = ("items", "calls", "prompts", "items+prompts")
METHODS: tuple[Method, ...] = ("t", "percentile", "bca", "studentised")


@dataclass(frozen=True)
class Settings:
    """The declarations that a decomposition was made under.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    classes : tuple of str
        Verdict classes in order, ⊥ last.
    classes_declared : bool
        False when the alphabet was read off the data.
    invalid, missing : tuple of str
        Labels of the table that mean ⊥, and no completion.
    invalid_as : str or (float, float)
        What ⊥ means under the kernel.
    incomplete, pairs, covers, interval : str
    level : float
    draws, seed : int
    tau : float or None
    where : tuple of str
        Row filters.
    independence : str
        ``untestable`` when the calls came without ids and times.
    scores : mapping, optional
        Declared scores of the interval kernel.
    standardise : bool
        Whether the interval kernel was divided by half the squared range of the scores.
    kernel_matrix : tuple of tuple of float, optional
        The user's own kernel, in the order of the classes.
    """

    kernel: str
    classes: tuple[str, ...]
    classes_declared: bool
    invalid: tuple[str, ...]
    missing: tuple[str, ...]
    invalid_as: InvalidAs
    incomplete: str
    pairs: Pairs
    covers: Covers
    interval: Method
    level: float
    draws: int
    seed: int
    tau: float | None
    where: tuple[str, ...] = ()
    independence: str = "untestable"
    scores: Mapping[str, float] | None = None
    standardise: bool = False
    kernel_matrix: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        one_of("pairs", self.pairs, PAIRS)
        one_of("covers", self.covers, COVERS)
        one_of("interval", self.interval, METHODS)
        if self.interval != "t" and self.covers != "items":
            raise InputError(
                f"a {self.interval} band covers resampled items, not {self.covers}",
                place="interval",
                remedy=f"use interval='t' with covers={self.covers!r}",
            )
        if not 0 < self.level < 1:
            raise InputError(f"{self.level} is not between 0 and 1", place="level", remedy="say for instance 0.95")
        check_draws(self.draws, least=100)
        whole(self.seed, "seed")
        if self.tau is not None:
            finite(self.tau, "tau")

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the order of the JSON schema."""
        plain: dict[str, Any] = {
            "kernel": self.kernel,
            "classes": list(self.classes),
            "classes_declared": self.classes_declared,
            "invalid": list(self.invalid),
            "missing": list(self.missing),
            "invalid_as": self.invalid_as if isinstance(self.invalid_as, str) else list(self.invalid_as),
            "incomplete": self.incomplete,
            "pairs": self.pairs,
            "covers": self.covers,
            "interval": self.interval,
            "level": self.level,
            "draws": self.draws,
            "seed": self.seed,
            "tau": self.tau,
            "where": list(self.where),
            "independence": self.independence,
        }
        if self.scores is not None:
            plain["scores"] = dict(self.scores)
        if self.standardise:
            plain["standardise"] = True
        if self.kernel_matrix is not None:
            plain["kernel_matrix"] = [list(row) for row in self.kernel_matrix]
        return plain


def one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices of an option.

    Raises
    ------
    InputError
        Naming the choices.
    """
    if value not in choices:
        raise InputError(f"{value!r} is not a choice", place=name, remedy=f"choose {', '.join(choices)}")
