"""A simulated judge: an HTTP server on this machine that speaks the chat protocol and whose law is known exactly.

It is content-addressed: the probabilities of its answers are a function of the messages it is shown, so the truth of
every cell of an audit is known before the first call. Seeds couple calls as on real servers, and it can be told to
fail in the ways that real servers do. Run one with :class:`SimulatedJudge`, or
``python -m secondorder.acquire._judge --laws laws.json``.
"""

from secondorder.acquire._judge._control import SimulatedJudge
from secondorder.acquire._judge._faults import Fault
from secondorder.acquire._judge._laws import derived_law, draw, messages_key, read_laws, uniform_of_seed, write_laws

__all__ = [
    "Fault",
    "SimulatedJudge",
    "derived_law",
    "draw",
    "messages_key",
    "read_laws",
    "uniform_of_seed",
    "write_laws",
]
