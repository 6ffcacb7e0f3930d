"""Measured rates beside the machine's limit as PNG images. Needs matplotlib (the optional dependencies `benchmark`)."""

from dataclasses import dataclass

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter  # noqa: E402

COLOURS = ("#1b6ca8", "#c8553d", "#588b4b", "#8a6bbe")


@dataclass(frozen=True)
class Point:
    """One measurement: tokens/s at x, and the most that the machine's limits allow there (None: not drawn)."""

    panel: str
    series: str
    x: float
    rate: float
    limit: float | None


def draw(path, points, axis, logarithmic=False):
    """One panel for each name of a panel; a line for each series, its limit dashed in the same colour."""
    panels = list(dict.fromkeys(point.panel for point in points))
    figure, axes = pyplot.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.5), squeeze=False)
    for ax, panel in zip(axes[0], panels, strict=True):
        _panel(ax, [point for point in points if point.panel == panel], logarithmic)
        ax.set(title=panel, xlabel=axis, ylabel="tokens/s")
    figure.tight_layout()
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def _panel(ax, points, logarithmic):
    for colour, series in zip(COLOURS, dict.fromkeys(point.series for point in points), strict=False):
        own = [point for point in points if point.series == series]
        ax.plot([p.x for p in own], [p.rate for p in own], "o-", color=colour, label=series)
        bounded = [p for p in own if p.limit is not None]
        if bounded:
            ax.plot([p.x for p in bounded], [p.limit for p in bounded], "--", color=colour, linewidth=1, label="limit")
    ticks = sorted({point.x for point in points})
    if logarithmic:
        ax.set(xscale="log", yscale="log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(NullFormatter())
        ticks = [x for i, x in enumerate(ticks) if i == 0 or x > 1.3 * ticks[i - 1]]  # no labels on top of each other
    else:
        ax.set_ylim(bottom=0)
    ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
