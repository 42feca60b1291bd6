"""Simulation studies and validation claims: laws with known truth, studies in ADEMP terms, claims with evidence.

A study is a file with one ``STUDY`` (:class:`Study`), a claim a file with one ``CLAIM`` (:class:`Claim`); the engine
that runs them is :func:`run_study` and :func:`run_claim`, on the command line ``secondorder simulate`` and
``secondorder validate``.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
