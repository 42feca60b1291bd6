"""Shared assertions say what differed, as those of a test do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(f"{__package__}.refusals")
