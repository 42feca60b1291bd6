"""Calls to judges: what is asked, sent, answered and stored, without a word of statistics.

From ``audit.toml`` to a plan of every call with its bytes; from the plan to a ledger in which each call ends exactly
once. ``so.run_audit`` and the command line stand on these functions; so can programs that gather verdicts in their own
way. The one list of public names is ``__init__.pyi``; nothing is imported before it is used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
