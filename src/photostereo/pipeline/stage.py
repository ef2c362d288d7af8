"""A stage of a pipeline: a result that is computed on demand, kept, and recomputed only if its key changes.

The key of a stage consists of the settings that it uses and the keys of the stages that it depends on::

    @stage(uses=("surface",), after=("solution",))
    def surface(self) -> Surface: ...
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class Staged:
    """Base of a class with stages."""

    seconds: dict[str, float]  #: wall-clock time of each stage's last computation, by name
    _kept: dict[str, tuple[Any, Any]]

    def __init__(self) -> None:
        self.seconds = {}
        self._kept = {}

    @property
    def complete_stages(self) -> tuple[str, ...]:
        """The names of the stages that have a result, in the order in which they were computed."""
        return tuple(self._kept)

    def value_of(self, name: str) -> Any:
        """Return the result of a stage, or None if it has not been computed; computes nothing."""
        if name in self._kept:
            return self._kept[name][1]
        return None

    def is_current(self, name: str) -> bool:
        """Whether a stage has been computed with the current settings."""
        return name in self._kept and self._kept[name][0] == getattr(type(self), name).key(self)

    def forget(self, *names: str) -> None:
        """Drop the results of these stages, to free their memory or because a file has changed."""
        for name in names:
            self._kept.pop(name, None)

    def forget_stale(self) -> None:
        """Drop results computed with other settings, to free their memory."""
        self.forget(*[name for name in self._kept if not self.is_current(name)])


def stage(
    *, uses: tuple[str, ...] = (), after: tuple[str, ...] = ()
) -> Callable[[Callable[[Any], Value]], Stage[Value]]:
    """Declare a method as a stage that depends on these settings (dots for nested ones) and stages."""
    return lambda make: Stage(make, uses, after)


class Stage(Generic[Value]):
    """A property that is computed once for each key."""

    def __init__(
        self, make: Callable[[Any], Value], uses: tuple[str, ...], after: tuple[str, ...]
    ) -> None:
        self.make = make
        self.uses = uses
        self.after = after
        self.name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Staged, owner: type) -> Value: ...
    def __get__(self, instance: Staged | None, owner: type) -> Self | Value:
        if instance is None:
            return self
        if not instance.is_current(self.name):
            key = self.key(instance)
            # Stages that this one depends on are computed first, so that their time is not counted here.
            for name in self.after:
                getattr(instance, name)
            began = time.perf_counter()
            instance._kept[self.name] = key, self.make(instance)
            instance.seconds[self.name] = time.perf_counter() - began
        value: Value = instance._kept[self.name][1]
        return value

    def key(self, instance: Staged) -> Any:
        """Everything that determines the value: equal keys, equal values."""
        settings = tuple(comparable(attrgetter(path)(instance)) for path in self.uses)
        return settings, tuple(getattr(type(instance), name).key(instance) for name in self.after)


def comparable(value: Any) -> Any:
    """Convert a setting to something that can be compared and hashed; an array by its content.

    >>> import numpy as np
    >>> comparable({"b": [1, 2]}) == comparable({"b": (1, 2)})
    True
    >>> comparable(np.zeros(3)) == comparable(np.zeros(3)), comparable(np.zeros(3)) == comparable(np.ones(3))
    (True, False)
    """
    if hasattr(value, "tobytes") and hasattr(value, "shape"):
        return (
            value.shape,
            str(value.dtype),
            hashlib.blake2b(value.tobytes(), digest_size=16).digest(),
        )
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(comparable(getattr(value, entry.name)) for entry in fields(value))
    if isinstance(value, Mapping):
        return tuple(sorted((name, comparable(entry)) for name, entry in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(comparable(entry) for entry in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value
