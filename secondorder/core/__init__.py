"""Array code: pure functions on JAX arrays, no labels, no files, no global state.

The public names are those of ``__init__.pyi``; each is loaded when it is first used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
