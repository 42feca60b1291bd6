"""The law of waiting, as pure functions: backoff, pace, and what a server asks for."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondorder.acquire._retry import Backoff, Pace, retry_after_s


@given(seed=st.integers(0, 2**53), attempt=st.integers(1, 2000))
def test_backoff_is_deterministic_jittered_and_capped(seed, attempt):
    law = Backoff(base_s=1.0, cap_s=60.0)
    wait = law.wait_s(seed, "call", attempt)
    longest = min(60.0, 2.0 ** min(attempt - 1, 60))
    assert wait == law.wait_s(seed, "call", attempt)
    assert longest / 2 <= wait <= longest
    assert wait != law.wait_s(seed, "other call", attempt)
    assert 7.0 <= law.wait_s(seed, "call", attempt, asked_s=7.0) <= 8.0


@given(
    per_minute=st.floats(0.5, 50_000),
    gaps=st.lists(st.floats(0, 30, allow_subnormal=False), min_size=1, max_size=300),
)
def test_no_minute_holds_more_than_its_share_and_one_seconds_burst(per_minute, gaps):
    pace, now, sends = Pace(per_minute), 0.0, []
    for gap in gaps:
        now += gap
        sends.append(now + pace.reserve(now))
    assert sends == sorted(sends)
    most = per_minute + max(1.0, per_minute / 60.0) + 1
    for first in range(0, len(sends), 7):
        assert sum(sends[first] <= at < sends[first] + 60.0 for at in sends) <= most


def test_after_a_pause_one_seconds_share_goes_at_once():
    pace = Pace(600.0)  # ten a second
    pace.reserve(0.0)
    assert [round(pace.reserve(100.0), 9) for _ in range(12)] == [0.0] * 10 + [0.1, 0.2]
    slow = Pace(30.0)
    assert [slow.reserve(100.0) for _ in range(3)] == [0.0, 2.0, 4.0]


def test_an_unlimited_pace_waits_only_when_told_to():
    pace = Pace(None)
    assert pace.reserve(5.0) == 0.0
    pace.hold(9.0)
    assert pace.reserve(5.0) == 4.0
    assert pace.reserve(10.0) == 0.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "later"}, None),
        ({"Retry-After": formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"Retry-After": "Mon, 12 Jan 1970 15:47:10 +0200"}, 30.0),
        ({"Retry-After": formatdate(999_000, usegmt=True)}, 0.0),
        ({"Retry-After": formatdate(2_000_030, usegmt=True), "Date": formatdate(2_000_000, usegmt=True)}, 30.0),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
    ],
)
def test_retry_after_is_read(headers, seconds):
    assert retry_after_s(headers, 1_000_000.0) == seconds
