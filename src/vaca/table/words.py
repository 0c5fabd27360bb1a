"""Numbers as people read them."""

from __future__ import annotations

import math

__all__ = ["shown_number"]


def shown_number(value: float, digits: int = 4) -> str:
    """A number with this many significant digits, or more before the point; never an exponent.

    >>> shown_number(1547.3), shown_number(130.2, 2), shown_number(0.02853), shown_number(-0.5)
    ('1,547', '130', '0.02853', '-0.5')
    """
    value = float(value)
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size > 15:
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(digits - 1 - size, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
