"""Judge studies on verdict cubes: agreement, the prompt lottery, aggregation and gates, design choices.

The one list of public names is ``__init__.pyi``; nothing is imported before it is used.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
