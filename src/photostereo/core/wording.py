"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any


def percent(share: float) -> str:
    """Format a share as a percentage, rounded to suit its size.

    >>> percent(0.1234), percent(0.0123), percent(0.00004)
    ('12 %', '1.2 %', 'under 0.1 %')
    """
    if 0 < share < 0.001:
        return "under 0.1 %"
    if share < 0.0995:
        return f"{100 * share:.1f} %"
    return f"{100 * share:.0f} %"


def amount(size: float) -> str:
    """Format an amount of memory, in bytes.

    >>> amount(2.5e9), amount(3e6)
    ('2.5 GB', '3 MB')
    """
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB"


def listed(names: Iterable[Any], most: int = 4) -> str:
    """List the first names, and count the others.

    >>> listed("abcdef")
    'a, b, c, d and 2 more'
    """
    every = [str(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def filled_in(text: str, values: Mapping[str, Any]) -> str:
    """Put values into a text.

    Besides the usual formats, ``{share:percent}`` is a percentage and ``{size:amount}`` an amount of memory.

    >>> filled_in("{share:percent} of {name}", {"share": 0.5, "name": "a.png"})
    '50 % of a.png'
    """
    return _Formatter().vformat(text, (), values)


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        special = {"percent": percent, "amount": amount}.get(format_spec)
        if special is not None:
            return special(value)
        return format(value, format_spec).replace("%", " %")
