"""Results do not depend on the user's JAX configuration, to the last bit, and do not change it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from secondorder._design import Design, standard_components
from secondorder.core import _estimates
from secondorder.core._balanced import balanced_pairs
from secondorder.core._cells import cells_from_codes, cells_from_soft
from secondorder.core._precision import double, seed_key

DESIGN = Design.balanced({"prompt": 3}, random=["prompt"])
COMPONENTS = standard_components(DESIGN.names)
RNG = np.random.default_rng(0)
POINTS = RNG.random((3, 2))
KERNEL = ((POINTS[:, None] - POINTS) ** 2).sum(-1)
CODES = RNG.integers(0, 3, (4, 3, 3))
ONE_HOT = np.eye(3)[CODES]
WITH_GAP = ONE_HOT.copy()
WITH_GAP[0, 0, 2] = np.nan
LAW = RNG.dirichlet(np.ones(3), (4, 3))

FLAGS = {
    "jax_enable_x64": True,
    "jax_numpy_rank_promotion": "raise",
    "jax_numpy_dtype_promotion": "strict",
    "jax_default_matmul_precision": "bfloat16",
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_default_prng_impl": "rbg",
    "jax_threefry_partitionable": False,
    "jax_legacy_prng_key": "error",
    "jax_disable_jit": True,
    "jax_transfer_guard": "disallow",
    "jax_enable_checks": True,
}


def declared(function: Callable[..., Any], *data: Any) -> Any:
    return function(*data, DESIGN, COMPONENTS, KERNEL)


@double
def draws() -> jax.Array:
    return jax.random.uniform(seed_key(7), (5,))


COMPUTATIONS: dict[str, Callable[[], Any]] = {
    "at_law": lambda: declared(_estimates.at_law, LAW),
    "plugin": lambda: declared(_estimates.plugin, cells_from_codes(CODES, 3)),
    "complete_pairs": lambda: declared(_estimates.complete_pairs, cells_from_codes(CODES, 3)),
    "complete_pairs, soft": lambda: declared(_estimates.complete_pairs, cells_from_soft(ONE_HOT * 0.7 + 0.1, KERNEL)),
    "across_repeats": lambda: declared(_estimates.across_repeats, ONE_HOT),
    "across_repeats, unequal": lambda: declared(_estimates.across_repeats, WITH_GAP),
    "panel_values": lambda: declared(_estimates.panel_values, ONE_HOT),
    "plugin_bias_at": lambda: declared(_estimates.plugin_bias_at, LAW, 3),
    "plugin_excess": lambda: declared(_estimates.plugin_excess, cells_from_codes(CODES, 3)),
    "balanced_pairs": lambda: np.stack(declared(balanced_pairs, CODES)),
    "draws": draws,
}


def bits(result: Any) -> tuple[str, bytes]:
    array = np.asarray(result)
    return str(array.dtype), array.tobytes()


@pytest.fixture(scope="module")
def expected() -> dict[str, tuple[str, bytes]]:
    return {name: bits(compute()) for name, compute in COMPUTATIONS.items()}


@pytest.fixture
def flag(request: pytest.FixtureRequest) -> Iterator[None]:
    """The user's configuration, set for the whole process."""
    before = {name: getattr(jax.config, name) for name in request.param}
    for name, value in request.param.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.parametrize("flag", [{name: value} for name, value in FLAGS.items()], ids=FLAGS, indirect=True)
@pytest.mark.usefixtures("flag")
def test_no_flag_changes_a_bit_or_is_changed(expected: dict[str, tuple[str, bytes]]) -> None:
    check(expected)


@pytest.mark.parametrize("flag", [FLAGS], ids=["all"], indirect=True)
@pytest.mark.usefixtures("flag")
def test_compiling_under_all_flags_changes_no_bit(expected: dict[str, tuple[str, bytes]]) -> None:
    jax.clear_caches()
    check(expected)


def check(expected: dict[str, tuple[str, bytes]]) -> None:
    settings = dict(jax.config.values)
    found = {name: bits(compute()) for name, compute in COMPUTATIONS.items()}
    assert found == expected
    assert {dtype for dtype, _ in found.values()} == {"float64"}
    assert dict(jax.config.values) == settings


def test_contexts_of_the_user_do_not_matter_either(expected: dict[str, tuple[str, bytes]]) -> None:
    with jax.enable_x64(True), jax.debug_nans(True), jax.default_matmul_precision("bfloat16"), jax.disable_jit():
        assert {name: bits(compute()) for name, compute in COMPUTATIONS.items()} == expected


@pytest.mark.parametrize("flag", [{"jax_debug_nans": True}], indirect=True)
@pytest.mark.usefixtures("flag")
def test_without_the_guard_flags_would_matter(expected: dict[str, tuple[str, bytes]]) -> None:
    """The planted fault: the same functions without the decorator."""
    with pytest.raises(FloatingPointError):
        declared(_estimates.across_repeats.__wrapped__, WITH_GAP)
    with pytest.warns(UserWarning, match="truncated to dtype float32"):
        found = bits(declared(_estimates.at_law.__wrapped__, LAW))
    assert found != expected["at_law"]


SCRIPT = """
import hashlib, sys
import jax
before = dict(jax.config.values)
import numpy as np
import secondorder.core
from secondorder._design import Design, standard_components
from secondorder.core import _estimates
from secondorder.core._cells import cells_from_codes
design = Design.balanced({"prompt": 3}, random=["prompt"])
codes = np.frombuffer(bytes.fromhex(sys.argv[1]), dtype=np.int8).reshape(4, 3, 3)
kernel = np.frombuffer(bytes.fromhex(sys.argv[2])).reshape(3, 3)
found = _estimates.complete_pairs(cells_from_codes(codes, 3), design, standard_components(design.names), kernel)
assert dict(jax.config.values) == before
print(hashlib.sha256(np.asarray(found).tobytes()).hexdigest())
"""


def test_neither_import_nor_environment_variables_matter(expected: dict[str, tuple[str, bytes]]) -> None:
    environment = {
        **os.environ,
        "JAX_ENABLE_X64": "1",
        "JAX_NUMPY_RANK_PROMOTION": "raise",
        "JAX_NUMPY_DTYPE_PROMOTION": "strict",
        "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
        "JAX_DEBUG_NANS": "1",
        "JAX_DEFAULT_PRNG_IMPL": "rbg",
    }
    arguments = [CODES.astype(np.int8).tobytes().hex(), KERNEL.tobytes().hex()]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == hashlib.sha256(expected["complete_pairs"][1]).hexdigest()
