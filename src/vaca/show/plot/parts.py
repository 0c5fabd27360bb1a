"""What the pictures share: colours, levels, densities, labels; and saving."""

from __future__ import annotations

import functools
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter, MaxNLocator

from vaca.errors import VacaError, did_you_mean, shorten, visible
from vaca.graph.parts import check_path
from vaca.model.arguments import check_count, check_names
from vaca.table.atomic import complete
from vaca.table.dtypes import as_numbers, holds_dates
from vaca.table.schema import Schema, as_frame

#: Colours that stay apart under all forms of colour-blindness (Okabe and Ito); darkest first.
COLOURS = ("#1a1a1a", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00")
#: For charts with a colour for each engine, in which black is the truth or what was published.
ENGINE_COLOURS = (*COLOURS[1:], "#56b4e9", "#8a6d00")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
GREY, PALE, FAINT = "#666666", "#d0d0d0", "#efefef"
PICTURES = (".png", ".svg", ".pdf")
#: More rows than this add nothing that an eye can see.
ROWS = 4000

P = ParamSpec("P")
T = TypeVar("T", Axes, Figure)


def beside(ax: Axes, y: float, text: str) -> None:
    """Write a row's numbers to the right of the axes."""
    at = ("axes fraction", "data")
    ax.annotate(text, (1.01, y), xycoords=at, va="center", fontsize=9, annotation_clip=False)


def with_levels(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with discrete columns as categories, so that pictures keep the schema's order."""
    if not isinstance(schema, Schema):
        raise VacaError(f"a schema is needed, such as model.schema_; got {shorten(schema)}")
    frame = as_frame(frame)
    changed = {
        name: pd.Categorical(frame[name], categories=list(column.levels), ordered=True)
        for name, column in schema.items()
        if column.discrete and name in frame.columns
    }
    return frame.assign(**changed)


def tables_of(before: Any, after: Any, labels: tuple[str, str]) -> dict[str, pd.DataFrame]:
    """The tables by label."""
    if (
        not isinstance(labels, tuple | list)
        or not all(isinstance(label, str) for label in labels)
        or len(set(labels)) != 2
    ):
        raise VacaError(f"labels are two names for the two tables; got {shorten(labels)}")
    if after is None:
        if not isinstance(before, Mapping) or isinstance(before, pd.DataFrame):
            raise VacaError("give two tables, or a dict from label to table")
        return {str(label): as_frame(table) for label, table in before.items()}
    return {labels[0]: as_frame(before), labels[1]: as_frame(after)}


def shared_columns(tables: Mapping[str, pd.DataFrame], columns: Sequence[str] | None) -> list[str]:
    """The columns to draw, of those that all tables have."""
    first, *rest = tables.values()
    common = [c for c in first.columns if all(c in t.columns for t in rest)]
    for label, table in tables.items():
        if not len(table):
            raise VacaError(f"the table {label!r} has no rows")
    return chosen_columns(first[common], columns)


def chosen_columns(frame: pd.DataFrame, columns: Sequence[str] | None) -> list[str]:
    """The columns to draw; one that is not there is an error that names it."""
    if columns is None:
        names = list(frame.columns)
    else:
        names = check_names("columns", columns)
        for name in names:
            if name not in frame.columns:
                raise VacaError(f"there is no column {name!r}; {did_you_mean(name, frame.columns)}")
    if not names:
        raise VacaError("there is no column to draw")
    return names


def is_discrete(values: pd.Series) -> bool:
    """Whether to draw bars: not numbers, or whole numbers of few kinds."""
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return not holds_dates(values)
    if not pd.api.types.is_integer_dtype(values.dtype):
        return False
    return bool(values.nunique() <= 10 and values.max() - values.min() <= 20)


def levels_of(joined: pd.Series, like: pd.Series) -> list[Any]:
    """The levels in the order of the column's categories, else sorted."""
    if isinstance(like.dtype, pd.CategoricalDtype):
        return list(like.dtype.categories)
    found = joined.astype(object).unique()
    return sorted(found, key=lambda v: (isinstance(v, str), v))


def joined(first: pd.Series, second: pd.Series) -> pd.Series:
    """Two columns in one, of a common dtype."""
    same = first.dtype == second.dtype
    return pd.concat([first, second] if same else [s.astype(object) for s in (first, second)])


def shares_of(values: pd.Series) -> pd.Series:
    """The share of each level."""
    return values.astype(object).value_counts(normalize=True)


def plain(values: pd.Series) -> pd.Series:
    """Levels as objects, numbers as floats."""
    if is_discrete(values):
        return values.astype(object)
    return pd.Series(as_numbers(values), values.index)


def grid_of(series: Iterable[pd.Series], limits: tuple[float, float] | None = None) -> np.ndarray:
    """Points on the axis of a density: the range of the data, widened for most of the other rows.

    The range is `limits` or else the first table's. A few rows of another table beyond it do not
    stretch the axis, and where the data have nothing below zero nothing is drawn there.
    """
    tables = [as_numbers(s) for s in series]
    low, high = limits or (float(tables[0].min()), float(tables[0].max()))
    least = 0.0 if low >= 0 else -np.inf
    for numbers in tables:
        a, b = (float(q) for q in np.quantile(numbers, (0.01, 0.99)))
        low, high = min(low, max(a, least)), max(high, b)
    if high <= low:
        pad = 0.1 * max(abs(low), 1.0)
        return np.linspace(low - pad, low + pad, 200)
    return np.linspace(low, high, 200)


def without_tails(numbers: np.ndarray) -> tuple[float, float]:
    """The range without 1 in 200 values at each end; from the smallest if none is negative.

    >>> without_tails(np.array([1.0, *[2.0, 3.0] * 500, 1e6]))
    (1.0, 3.0)
    """
    least, low, high = (float(q) for q in np.quantile(numbers, (0.0, 0.005, 0.995)))
    return (low if least < 0 else least), high


def density(numbers: np.ndarray, grid: np.ndarray) -> np.ndarray | None:
    """A kernel estimate of the density on a grid; None if all values are the same."""
    from scipy.stats import gaussian_kde

    if np.ptp(numbers) <= 1e-9 * max(1.0, float(np.abs(numbers).max())):
        return None
    taken = numbers[some_rows(len(numbers), ROWS)]
    if np.ptp(taken) == 0:
        return None
    return gaussian_kde(taken)(grid)


def some_rows(n: int, most: int) -> np.ndarray:
    """At most this many row numbers, evenly spread, the same each time."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def level_ticks(ax: Axes, levels: list[Any]) -> None:
    """Name the levels on the axis, slanted where they are crowded."""
    crowded = sum(min(12, len(str(v))) + 1 for v in levels) > 38
    ax.set_xticks(
        range(len(levels)),
        [wrap(str(v), 12) for v in levels],
        rotation=40 if crowded else 0,
        ha="right" if crowded else "center",
        fontsize=8,
    )


def set_limits(ax: Axes, low: float, high: float, pad: float = 0.05) -> None:
    """Set the ends of the axis, with some room."""
    width = (high - low) or max(abs(low), 1.0)
    ax.set_xlim(low - pad * width, high + pad * width)
    if 1e3 <= max(abs(low), abs(high)) < 1e9:
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.xaxis.set_major_formatter(FuncFormatter(thousands))


def thousands(value: float, _: Any = None) -> str:
    """The number at a tick, with separators.

    >>> thousands(12000.0), thousands(-2500.5)
    ('12,000', '−2,500.5')
    """
    return f"{value:,.10g}".replace("-", "−")


def wrap(text: str, width: int) -> str:
    r"""Break a name into lines, for a picture; a dollar sign is a dollar sign, not mathematics.

    >>> wrap("loan_duration", 8), wrap("cost in $", 20)
    ('loan_\nduration', 'cost in \\$')
    """
    # Names such as loan_duration may break after an underscore.
    broken = "\n".join(textwrap.wrap(text.replace("_", "_\u200b "), width))
    return broken.replace("\u200b ", "").replace("\u200b", "").replace("$", r"\$")


def clip(text: str) -> str:
    """A name cut to ten letters."""
    return text if len(text) <= 10 else text[:9] + "…"


def bars_of(ax: Axes, series: Mapping[str, pd.Series], levels: list[Any]) -> dict[str, Any]:
    """Bars of the shares of levels, side by side; gives a handle for each table."""
    handles: dict[str, Any] = {}
    width = 0.8 / len(series)
    for k, (label, values) in enumerate(series.items()):
        shares = shares_of(values)
        handles[label] = ax.bar(
            np.arange(len(levels)) - 0.4 + width * (k + 0.5),
            [float(shares.get(level, 0.0)) for level in levels],
            width,
            facecolor=PALE if k == 0 else "white",
            edgecolor=COLOURS[k % 6],
            hatch=HATCHES[k % 6],
            linewidth=1,
        )
    level_ticks(ax, levels)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
    return handles


def as_written(draw: Callable[P, T]) -> Callable[P, T]:
    """For functions that draw: names and levels are shown as they are, not read as formulas."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        picture = draw(*args, **kwargs)
        for part in picture.findobj():
            if isinstance(part, Text):
                part.set_parse_math(False)
                part.set_text(visible(part.get_text()))
            elif isinstance(part, Axis):
                formatter = part.get_major_formatter()
                if isinstance(formatter, FixedFormatter):
                    labels = [visible(str(label)) for label in formatter.seq]
                    part.set_major_formatter(FixedFormatter(labels))
        return picture

    return drawn


def check_axes(ax: Any) -> None:
    """Axes of matplotlib, or None for new ones."""
    if ax is not None and not isinstance(ax, Axes):
        raise VacaError(f"ax is an Axes of matplotlib; got {shorten(ax)}")


def check_text(name: str, value: Any) -> None:
    """A text, or None."""
    if value is not None and not isinstance(value, str):
        raise VacaError(f"{name} is a text; got {shorten(value)}")


def save_picture(picture: Axes | Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write a picture to a .png, .svg or .pdf file, all or nothing, and give its path."""
    if not isinstance(picture, Axes | Figure):
        raise VacaError(f"a picture is an Axes or a Figure; got {shorten(picture)}")
    dpi = check_count("dpi", dpi, 10, 2_000)
    path = check_path(path)
    if path.suffix.lower() not in PICTURES:
        raise VacaError(f"{path}: unknown kind of picture; use {', '.join(PICTURES)}")
    if not path.parent.is_dir():
        raise VacaError(f"{path}: there is no folder {path.parent}; make it first")
    figure = picture if isinstance(picture, Figure) else picture.get_figure(root=True)
    if figure is None:
        raise VacaError("these axes belong to no figure")
    # Matplotlib writes the day and its own address into a file unless told not to.
    clean: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with complete(path) as part, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box says so in its place
        figure.savefig(part, dpi=dpi, metadata=clean.get(path.suffix.lower()))
    return path
