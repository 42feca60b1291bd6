"""Colours, sizes and SVG: the look that all figures share."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PLUGIN_GREY", "colours", "legend_columns", "new_axes", "plain", "short_label", "tidy", "to_svg"]

# Okabe and Ito's palette: distinguishable under the common kinds of colour blindness.
CALL = "#0072B2"
PALETTE = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#882255", "#999999")
PLUGIN_GREY = "#767676"
INK = "#222222"
LONGEST_LABEL = 32
LEGEND_WIDTH = 84


def colours(names: Sequence[str]) -> dict[str, str]:
    """One colour per component, the same in every figure: call is blue, the others follow in order."""
    others = [name for name in names if name not in ("call", "total")]
    found = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(others)}
    return {**found, "call": CALL, "total": INK}


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of `size` inches that belongs to no window."""
    if ax is not None:
        return ax
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure.subplots()


def tidy(ax: Axes) -> None:
    """Take away what carries no information."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def short_label(group: str) -> str:
    """A group's label without its column's name, where it has one column: ``judge = qwen`` is ``qwen``."""
    return plain(group.partition(" = ")[2] if group.count(" = ") == 1 else group)


def plain(label: str) -> str:
    """A label as matplotlib shows it literally, on one line, cut to what a figure can bear."""
    text = " ".join(label.split())
    text = text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
    # Legends leave out what begins with an underscore.
    return (f" {text}" if text.startswith("_") else text).replace("$", r"\$")


def legend_columns(labels: Sequence[str], *, beside: int = 0) -> int:
    """Columns of a legend above axes of the usual width, less `beside` characters: one row if all fits."""
    widths = [6 + len(label) for label in labels]
    room = LEGEND_WIDTH - beside
    return len(labels) if sum(widths) <= room else max(1, room // max(widths))


def to_svg(figure: Figure | Axes, *, identity: str = "secondorder") -> str:
    """A figure as one ``<svg>`` element with text as text, the same bytes for the same figure.

    Parameters
    ----------
    figure : Figure or Axes
    identity : str
        Salt of the ids inside the SVG: figures on one page need different ones.

    Returns
    -------
    str
    """
    import matplotlib as mpl

    target: Any = getattr(figure, "figure", None) or figure
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": identity}), warnings.catch_warnings():
        # Text stays text: whoever shows the figure has the glyphs, or not; here they are only measured.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        target.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return re.sub(r"^.*?(?=<svg)", "", text, count=1, flags=re.DOTALL).strip()
