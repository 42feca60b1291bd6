"""Sphinx configuration: warnings are errors, every cell is executed, reference pages are made from the code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
# Kernels are processes of their own: they must find this package, and the commands beside this Python.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
os.environ["IPYTHONDIR"] = str(HERE / "_ext" / "ipython")
# Cells print tables, not colours; and no width of the builder's terminal gets into a page.
os.environ.update({"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"})

import reference_pages  # noqa: E402

import secondorder  # noqa: E402

reference_pages.write(HERE / "reference")

project = "secondorder"
author = copyright = "the secondorder contributors"
version = release = secondorder.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "mathml",
    "star_shapes",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "jupyter_execute", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"
smartquotes = False  # --flag and "" stay what they are
html_theme = "pydata_sphinx_theme"
html_title = "secondorder"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}
