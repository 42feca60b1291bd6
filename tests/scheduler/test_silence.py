"""When a judge is taken to be away: by the calls since its last answer, each looked at once."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from secondorder.acquire._silence import SILENT, SILENT_ITEMS, Silence, Unanswered


class Asked:
    """A call that counts how often its item is asked for."""

    times = 0

    @property
    def item(self) -> str:
        self.times += 1
        return "the only one"


@given(
    st.lists(
        st.none() | st.tuples(st.sampled_from(("connection", "http_error", "timeout")), st.integers(0, 3)), max_size=40
    )
)
def test_a_judge_is_away_by_the_calls_since_its_last_answer(events):
    silence, since = Silence(answered=True), []
    for event in events:
        if event is None:
            silence.end()
            since = []
            continue
        reason, item = event
        since.append(event)
        errors, items = "http_error" in {r for r, _ in since}, {i for _, i in since}
        away = len(since) >= SILENT and (not errors or len(items) >= SILENT_ITEMS)
        assert silence.add(Unanswered(SimpleNamespace(item=item), 1, SimpleNamespace(reason=reason))) == away
        assert len(silence) == len(since)


def test_each_unanswered_call_is_looked_at_once():
    silence, call = Silence(answered=True), Asked()
    for _ in range(1000):
        assert not silence.add(Unanswered(call, 1, SimpleNamespace(reason="http_error")))
    assert call.times == 1000
