"""``--set NAME=VALUE`` as the commands take it."""

from __future__ import annotations

from photostereo.core.errors import ParameterError


def parse_settings(settings: list[str] | None) -> dict[str, str]:
    """Names and values of repeated ``--set`` options.

    >>> parse_settings(["mu=0.05", "p = 3"])
    {'mu': '0.05', 'p': '3'}
    """
    values: dict[str, str] = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ParameterError(
                f'"{text}" is not a setting. Write --set NAME=VALUE, for instance --set mu=0.05.'
            )
        values[name.strip()] = value.strip()
    return values
