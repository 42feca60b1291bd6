"""Logs of other tools: judge calls that were made elsewhere, as rows and cubes.

Every reader gives a :class:`Log`: plain rows, the declaration that makes them a cube, and notes on what the log cannot
say. What they share:

- ``⊥`` is a call that completed without a valid verdict, the empty verdict a call that did not complete. Where a tool
  mixes both, the log's own evidence decides, and where there is none the reader asks for a declaration.
- An answer from the tool's cache is no repeat: it is refused, or left out and counted (``cached="drop"``), or kept
  because the cache holds one entry per repeat (``cached="keep"``).
- Candidate order is undone: ``1`` is the same candidate under both orders.
- Columns that are constant within an item are no facets; a note says so.
- Logs have no response ids: their cubes are marked ``independence: untestable``.

The one list of public names is ``__init__.pyi``; a file is loaded when its reader is used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
