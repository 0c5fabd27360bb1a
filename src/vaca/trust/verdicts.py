"""The parts of a check in words: a figure, what it should be, and how bad it is."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd

from vaca.trust.askable import SAFE

__all__ = ["PART", "Verdict", "grade", "line", "listed", "shown_p", "worst"]

Verdict = Literal["good", "doubtful", "bad"]
ORDER: tuple[Verdict, ...] = ("good", "doubtful", "bad")
PART = ["part", "verdict", "figure", "reference", "words"]

#: How many of 100 pairs of a drawn and a held-out row can be told apart: doubtful, bad.
TOLD = (0.55, 0.60)
#: Distance of ranks from uniform; correlation of noise with a cause; share left unexplained.
OFF, NOISE, UNEXPLAINED = (0.1, 0.2), (0.15, 0.3), (0.15, 0.3)
#: Share of draws that are impossible values.
OUTSIDE = (0.02, 0.2)
#: Counterfactuals in standard deviations: exact axioms, the way back, and means.
EXACT, BACK, MEANS = (1e-6, 1e-3), (0.1, 0.5), (0.1, 0.3)
#: Below this p a difference is not chance.
SURE = 0.01


def worst(verdicts: Any) -> Verdict:
    """The worst of some verdicts."""
    return ORDER[max((ORDER.index(v) for v in verdicts), default=0)]


def grade(value: float, limits: tuple[float, float]) -> Verdict:
    """Good up to the first limit, bad beyond the second."""
    return ORDER[int(value > limits[0]) + int(value > limits[1])]


def line(part: str, verdict: Verdict, figure: float, reference: str, words: str) -> dict[str, Any]:
    """One row of the parts."""
    return dict(zip(PART, (part, verdict, float(figure), reference, words), strict=True))


def shown_p(p: float) -> str:
    """A p-value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def listed(names: Any) -> str:
    """Names in a sentence: `a, b and c`."""
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def rows_part(told: tuple[float, float], count: int, unseen: bool) -> dict[str, Any]:
    """Rows of the model against held-out ones."""
    share, p = told
    verdict = grade(share, TOLD) if p < SURE else "good"
    which = "held-out rows" if unseen else "rows, which the fit may have seen"
    words = (
        f"a classifier picks the drawn row in {100 * share:.0f} of 100 pairs, where guessing "
        f"picks 50 ({shown_p(p)}; {count:,} {which})"
    )
    return line("rows", verdict, share, "0.5 for a perfect model", words)


def column_parts(columns: pd.DataFrame) -> list[dict[str, Any]]:
    """Calibration, what is explained, and impossible values."""
    sure = columns["p"] < SURE
    worst = columns["off"].where(sure, 0.0)
    name = worst.idxmax() if sure.any() else columns["off"].idxmax()
    words = (
        f"{name} is furthest from calibrated, given its causes, by {columns.at[name, 'off']:.2f}"
    )
    if columns.at[name, "unreliable"] == columns.at[name, "unreliable"]:
        words += f"; its probabilities are off by {columns.at[name, 'unreliable']:.2f} on average"
    parts = [line("calibration", grade(worst.max(), OFF), columns["off"].max(), "0", words)]
    gap = columns["explainable"] - columns["explained"]
    name = gap.idxmax()
    words = (
        f"at worst, {name}: the causes explain {_percent(columns.at[name, 'explained'])}, a plain "
        f"regression {_percent(columns.at[name, 'explainable'])}"
    )
    parts.append(line("explained", grade(gap.max(), UNEXPLAINED), gap.max(), "at most 0", words))
    name = columns["outside"].idxmax()
    outside = columns["outside"].max()
    words = "no impossible values" if outside == 0 else (
        f"{_percent(outside)} of the values drawn for {name} are negative or far out, as no row is"
    )  # fmt: skip
    parts.append(line("values", grade(outside, OUTSIDE), outside, "0", words))
    return parts


def _percent(share: float) -> str:
    text = f"{100 * share:.0f}"
    return f"{text if text != '-0' else '0'} %" if abs(share) >= 0.01 or share == 0 else "below 1 %"


def noise_part(noise: pd.DataFrame) -> dict[str, Any]:
    """What the noise of a column should not be related to."""
    if not len(noise):
        return {}
    broken = noise[noise["adjusted"] < SURE]
    size = broken["size"].max() if len(broken) else 0.0
    if not len(broken):
        words = "what causes leave open is independent of them and of one another"
    else:
        first = broken.loc[broken["size"].idxmax()]
        what = first["other"] if first["kind"] == "cause" else f"that of {first['other']}"
        words = f"the noise of {first['column']} goes with {what} (correlation {first['size']:.2f})"
    return line("noise", grade(size, NOISE), size, "0", words)


def question_part(asked: pd.DataFrame) -> dict[str, Any]:
    """Which questions are safe."""
    if not len(asked):
        return {}
    safe, rest = asked.index[asked["safe"]], asked[~asked["safe"]]
    words = f"safe to ask about: {', '.join(safe) or 'nothing'}"
    if len(rest):
        words += "; extrapolates for " + ", ".join(
            f"{name} ({_percent(share)} of rows)" for name, share in rest["extrapolates"].items()
        )
    verdict: Verdict = "good" if len(safe) else "doubtful"
    return line("questions", verdict, len(safe) / len(asked), f"{SAFE:.0%} of rows or less", words)


def axiom_part(kept: pd.DataFrame) -> dict[str, Any]:
    """The axioms of counterfactuals."""
    if not len(kept):
        return {}
    verdicts, figures = [], {}
    for name, row in kept.iterrows():
        if name == "agreement":
            verdicts.append(grade(max(0.0, row["worst"] - 3 * row["noise"]), MEANS))
            figures["means of counterfactuals and of do"] = row["worst"]
        elif name == "reversibility":
            verdicts.append(grade(row["off"], BACK))
            figures["there and back"] = row["off"]
        else:
            verdicts.append(grade(row["worst"], EXACT))
            figures[str(name)] = row["worst"]
    words = "off by " + ", ".join(f"{value:.2g} ({name})" for name, value in figures.items())
    return line("axioms", worst(verdicts), max(figures.values()), "0, in sd", words)


def engine_part(others: pd.DataFrame) -> dict[str, Any]:
    """Main effects by another engine."""
    if not len(others):
        return {}
    apart = others["apart"].max()
    first = others.loc[others["apart"].idxmax()]
    words = (
        f"{first['other engine']} agrees on all {len(others)} main effects within {apart:.2f} sd"
        if apart <= 0.25
        else f"{first['effect']}: {first['model']:.3g} here, {first['other']:.3g} by "
        f"{first['other engine']}"
    )
    return line("engines", "doubtful" if apart > 0.25 else "good", apart, "at most 0.25 sd", words)
