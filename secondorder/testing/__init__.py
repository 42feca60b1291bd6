"""Tools that show an estimator right or wrong: exact enumeration, a brute-force oracle, honest random checks.

They are the tools with which this package checks itself, and they ask nothing of the estimator under test but that it
can be called. Exact checks run in fractions: every outcome of a small experiment is listed with its probability, so
that "unbiased" is an equality without tolerance. Random checks state the rate at which they fail without cause and the
smallest error that they can see.

:mod:`secondorder.testing.strategies` needs hypothesis (``pip install secondorder[testing]``); nothing else here does.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
