"""The public API: this list is the only one."""

from . import core as core
from . import errors as errors
from . import plot as plot
from . import simulate as simulate
from . import testing as testing
from ._design import Component as Component
from ._design import Design as Design
from ._design import Facet as Facet
from ._design import standard_components as standard_components
from ._labels._cells import count as count
from ._labels._cells import estimate_law as estimate_law
from ._labels._cells import one_hot as one_hot
from ._labels._files import open_cube as open_cube
from ._labels._files import save_cube as save_cube
from ._labels._read import make_cube as make_cube
from ._labels._read import read_table as read_table
from ._statistics._compare import Comparison as Comparison
from ._statistics._decompose import decompose as decompose
from ._statistics._decomposition import Decomposition as Decomposition
from ._statistics._decomposition import compare as compare
from ._statistics._kernel import kernel as kernel
from ._statistics._law import decompose_law as decompose_law
from ._statistics._law import plugin_bias as plugin_bias
