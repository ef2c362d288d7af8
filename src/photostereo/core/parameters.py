"""Parameters of methods: their types, defaults and ranges, and the conversion of user input.

A model or a prior declares its parameters as the fields of a frozen dataclass::

    @dataclass(frozen=True)
    class PiecewiseParameters:
        p: int = integer(2, "number of linear pieces", minimum=1, maximum=32)

The command line, ``photostereo methods``, the checks and the documentation are generated from that declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal

from photostereo.core.errors import ParameterError, did_you_mean

_KEY = "photostereo parameter"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method."""

    name: str  #: as users write it, ``--set name=value`` or a keyword argument
    kind: Callable[[Any], Any]  #: converts a value or text, raising ValueError or TypeError
    default: Any  #: the value if the user gives none
    doc: str  #: one line
    expects: str  #: the type in words
    #: the allowed range (inclusive, exclusive, inclusive); None is no bound
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    #: when a model's parameter applies: only without a prior (``"alone"``: the prior may have one of the same name, which
    #: then replaces it), or only with one (``"prior"``)
    when: Literal["always", "alone", "prior"] = "always"

    def convert(self, value: Any, method: str) -> Any:
        """Convert and check a value.

        Parameters
        ----------
        value
            What the user gave: a value, or its text.
        method : str
            The name of the method, for the error message.

        Raises
        ------
        ParameterError
            ``"bad-parameter"``
        """
        try:
            result = self.kind(value)
            if isinstance(result, (int, float)) and not self._is_in_range(result):
                raise ValueError
            return result
        except ParameterError:
            raise
        except (TypeError, ValueError, OverflowError):
            given = str(value)[:80]
            default = f"{self.show_default()}: {self.doc}"
            raise ParameterError(
                f"Parameter {self.name} of method {method} must be {self.allowed}, not {given}. "
                f"Its default is {default}.",
                code="bad-parameter",
                name=self.name,
                method=method,
                allowed=self.allowed,
                given=given,
                default=default,
            ) from None

    def _is_in_range(self, value: float) -> bool:
        if not math.isfinite(value):
            return False
        if self.minimum is not None and value < self.minimum:
            return False
        if self.maximum is not None and value > self.maximum:
            return False
        return self.above is None or value > self.above

    @property
    def allowed(self) -> str:
        """The type and the range in words, such as ``"a whole number from 1 to 32"``."""
        kind, auto, _ = self.expects.partition(' or "auto"')
        words = [kind]
        if self.above is not None:
            words.append(f"above {self.above:g}")
        if self.minimum is not None:
            words.append(f"from {self.minimum:g}")
        elif self.maximum is not None:
            words.append("up")
        if self.maximum is not None:
            words.append(f"to {self.maximum:g}")
        comma = "," if auto and len(words) > 1 else ""
        return " ".join(words) + comma + auto

    def show_default(self) -> str:
        """The default as users write it."""
        if isinstance(self.default, tuple):
            return "x".join(str(part) for part in self.default)
        if self.default is None:
            return "auto"
        text = str(self.default)
        return text.lower() if isinstance(self.default, bool) else text


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in ("true", "yes", "on", "1", "false", "no", "off", "0"):
        return word in ("true", "yes", "on", "1")
    raise ValueError


def custom(default: Any, doc: str, expects: str, kind: Callable[[Any], Any], **more: Any) -> Any:
    """Declare a field of a dataclass as a parameter.

    Parameters
    ----------
    default
        The value if the user gives none.
    doc : str
        One line on what it does.
    expects : str
        The type in words, such as ``"a number"``.
    kind : callable
        Converts a value or its text; raises a ValueError or TypeError.
    **more
        The range, and when the parameter applies: see :class:`Parameter`.
    """
    parameter = Parameter("", kind, default, doc, expects, **more)
    return field(default=default, metadata={_KEY: parameter})


#: Fields that hold a number, a whole number, or true or false.
number = partial(custom, expects="a number", kind=_number)
integer = partial(custom, expects="a whole number", kind=_integer)
flag = partial(custom, expects="true or false", kind=_flag)


def number_or_auto(doc: str, default: float | None = None, **more: Any) -> Any:
    """A field that holds a number, or None for one that is measured."""

    def parse(value: Any) -> float | None:
        if value is None or value == "auto":
            return None
        return _number(value)

    return custom(default, doc, 'a number or "auto"', parse, **more)


def choice(default: str, choices: Iterable[str], doc: str, **more: Any) -> Any:
    """A field that holds one of a few words."""
    known = tuple(choices)

    def pick(value: Any) -> str:
        return known[known.index(str(value))]

    return custom(default, doc, "one of " + ", ".join(known), pick, **more)


def whole_numbers(default: tuple[int, ...], doc: str, **more: Any) -> Any:
    """A field of a few whole numbers: a sequence, or text such as ``8x8x3`` or ``8,8,3``."""

    def parse(value: Any) -> tuple[int, ...]:
        if isinstance(value, str):
            value = value.lower().replace("x", ",").split(",")
        return tuple(_integer(part) for part, _ in zip(value, default, strict=True))

    words = f"{len(default)} whole numbers such as " + "x".join(str(part) for part in default)
    return custom(default, doc, words, parse, **more)


def parameters_of(declared: type) -> tuple[Parameter, ...]:
    """The parameters that a dataclass declares, in its order."""
    return tuple(
        replace(f.metadata[_KEY], name=f.name) for f in fields(declared) if _KEY in f.metadata
    )


def resolve(known: Iterable[Parameter], given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return all parameters of a method with their values.

    Parameters
    ----------
    known : iterable of Parameter
        Those that the method has.
    given : mapping
        Values or their texts, by name; they are checked.
    method : str
        The name of the method, for error messages.

    Returns
    -------
    dict
        A value for every parameter, the default if none was given.
    """
    by_name = {parameter.name: parameter for parameter in known}
    for name in given:
        if name not in by_name:
            hint = did_you_mean(name, by_name)
            names = ", ".join(by_name) or "none"
            raise ParameterError(
                f'Method {method} has no parameter "{name}".{hint} Its parameters: {names}.',
                code="unknown-parameter",
                name=name,
                method=method,
                names=names,
            )
    values = {name: parameter.default for name, parameter in by_name.items()}
    for name, value in given.items():
        values[name] = by_name[name].convert(value, method)
    return values
