"""Figures: components debiased beside plug-in, bands, the items behind a mean, and plans.

Every function draws on given axes (or makes them) and returns them, takes colours that colour-blind readers can tell
apart, and says in the axis title which randomness its bars cover. matplotlib is loaded when a figure is drawn, never
through pyplot: no window opens and no global state changes.
"""

from secondorder.plot._budget import budget
from secondorder.plot._components import bands, components
from secondorder.plot._items import items
from secondorder.plot._prefixes import prefixes
from secondorder.plot._style import to_svg

__all__ = ["bands", "budget", "components", "items", "prefixes", "to_svg"]
