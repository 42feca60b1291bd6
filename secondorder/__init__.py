"""How much of an LLM judge's verdict is the answer, and how much is the prompt, the order, or the dice.

Verdicts of repeated calls form a cube (item, prompt, order, repeat, class). ``decompose`` splits their disagreement
into call noise, prompt, order and interactions with exactly debiased estimators, beside the plug-in measure that
counts call noise as prompt effect. Names are loaded when they are first used.
"""

import lazy_loader as _lazy

from secondorder._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]
