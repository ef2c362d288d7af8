"""Changes of the public interface that give users time: old names work for a while, and warn.

The policy is in ``docs/stability.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def rename_parameter(
    old: str, new: str, *, since: str, until: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function accept a keyword argument under its old name, with a warning.

    Parameters
    ----------
    old, new : str
        The names.
    since : str
        The version in which the parameter was renamed.
    until : str
        The first version that does not accept the old name.

    Examples
    --------
    >>> @rename_parameter("size", "texels", since="0.2", until="0.4")
    ... def area(*, texels: int) -> int:
    ...     return texels**2
    >>> area(texels=3)
    9
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        message = (
            f"The parameter {old} of {function.__name__} is called {new} since version {since}; "
            f"version {until} will not accept the old name."
        )

        @wraps(function)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{function.__name__}() got both {new} and its old name {old}")
                warnings.warn(message, FutureWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renamed

    return decorate


def deprecated(
    instead: str, *, since: str, until: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function that will be removed: it warns and works.

    Parameters
    ----------
    instead : str
        What to use, such as ``"ps.solve"``.
    since : str
        The version in which it was deprecated.
    until : str
        The first version without it.

    Examples
    --------
    >>> @deprecated("ps.solve", since="0.2", until="0.4")
    ... def reconstruct() -> str:
    ...     return "normals"
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        message = (
            f"{function.__name__} is deprecated since version {since} and will be removed in "
            f"version {until}. Use {instead}."
        )

        @wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(message, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warned

    return decorate


def removal_is_due(until: str, version: Any) -> bool:
    """Whether a deprecated name should be gone in a version.

    >>> removal_is_due("0.4", "0.3.2"), removal_is_due("0.4", "0.10.0")
    (False, True)
    """

    def parts(text: str) -> list[int]:
        return [int(part) for part in text.split(".") if part.isdecimal()]

    return parts(str(version)) >= parts(until)
