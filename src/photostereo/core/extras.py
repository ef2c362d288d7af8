"""Libraries that only some commands need, in extras of the package."""

from __future__ import annotations

from importlib.util import find_spec

from photostereo.core.errors import MissingDependencyError


def require_extra(library: str, extra: str, what: str) -> None:
    """Raise a :class:`MissingDependencyError` that names the extra if a library is not installed.

    >>> require_extra("json", "nothing", "This")
    >>> require_extra("no_such_library", "batch", "Many captures at once")
    Traceback (most recent call last):
    ...
    photostereo.core.errors.MissingDependencyError: Many captures at once need no_such_library. Install it with: pip ...
    """
    if find_spec(library) is None:
        raise MissingDependencyError(
            f'{what} need {library}. Install it with: pip install "photostereo[{extra}]"',
            code="missing-extra",
            library=library,
            extra=extra,
        )
