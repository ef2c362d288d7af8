"""Exact slopes by forward differentiation: heights that carry their two partial derivatives.

A shape is a formula z(u, v). Writing it with :class:`Jet` in place of arrays gives z together with
∂z/∂u and ∂z/∂v by the chain rule, so the true normals of a scene are exact for any formula, and no
derivative is written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Number: TypeAlias = "Jet | Array | float"


@dataclass(frozen=True, slots=True, eq=False)
class Jet:
    """A field over the plane with its partial derivatives along u (right) and v (up).

    >>> u, v = variables(np.array([0.6]), np.array([0.0]))
    >>> z = (1.0 - u * u - v * v).sqrt()
    >>> round(float(z.value[0]), 6), round(float(z.du[0]), 6)
    (0.8, -0.75)
    """

    value: Array
    du: Array
    dv: Array

    def chain(self, value: Array, slope: Array) -> Jet:
        """f(self), given the values of f and of f′ at ``self.value``."""
        return Jet(value, slope * self.du, slope * self.dv)

    def __add__(self, other: Number) -> Jet:
        if isinstance(other, Jet):
            return Jet(self.value + other.value, self.du + other.du, self.dv + other.dv)
        return Jet(self.value + other, self.du, self.dv)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.du, -self.dv)

    def __sub__(self, other: Number) -> Jet:
        return self + (-other)

    def __rsub__(self, other: Number) -> Jet:
        return (-self) + other

    def __mul__(self, other: Number) -> Jet:
        if isinstance(other, Jet):
            return Jet(
                self.value * other.value,
                self.du * other.value + self.value * other.du,
                self.dv * other.value + self.value * other.dv,
            )
        return Jet(self.value * other, self.du * other, self.dv * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Jet:
        if isinstance(other, Jet):
            inverse = 1.0 / other.value
            return self * other.chain(inverse, -inverse * inverse)
        return self * (1.0 / other)

    # Make NumPy leave ``array * jet`` to the operators above.
    __array_ufunc__ = None

    def square(self) -> Jet:
        return self.chain(self.value * self.value, 2.0 * self.value)

    def sqrt(self, *, floor: float = 1e-12) -> Jet:
        """Return the square root, constant where the field is below ``floor``.

        That keeps slopes finite.
        """
        root = np.sqrt(np.maximum(self.value, floor))
        return self.chain(root, np.where(self.value > floor, 0.5 / root, 0.0))

    def sin(self) -> Jet:
        return self.chain(np.sin(self.value), np.cos(self.value))

    def cos(self) -> Jet:
        return self.chain(np.cos(self.value), -np.sin(self.value))

    def exp(self) -> Jet:
        value = np.exp(self.value)
        return self.chain(value, value)

    def smoothstep(self, low: float, high: float) -> Jet:
        """Return 0 below ``low``, 1 above ``high``, and a quintic between.

        It is 6t⁵ − 15t⁴ + 10t³, smooth to order 2.
        """
        t = np.clip((self.value - low) / (high - low), 0.0, 1.0)
        value = t * t * t * (t * (6.0 * t - 15.0) + 10.0)
        slope = 30.0 * (t * (1.0 - t)) ** 2 / (high - low)
        return self.chain(value, slope)


def variables(u: Array, v: Array) -> tuple[Jet, Jet]:
    """The coordinates themselves: slopes (1, 0) and (0, 1)."""
    one = np.ones_like(u)
    zero = np.zeros_like(u)
    return Jet(u, one, zero), Jet(v, zero, one)


def constant(value: float, like: Jet) -> Jet:
    """A field without slope."""
    zero = np.zeros_like(like.value)
    return Jet(zero + value, zero, zero)


def arctangent(y: Jet, x: Jet) -> Jet:
    """The angle of (x, y) in radians, in (−π, π]; its slope is bounded near the origin."""
    squared = np.maximum(x.value**2 + y.value**2, 1e-12)
    along_x = -y.value / squared
    along_y = x.value / squared
    return Jet(
        np.arctan2(y.value, x.value),
        along_x * x.du + along_y * y.du,
        along_x * x.dv + along_y * y.dv,
    )


def where(condition: NDArray[np.bool_], first: Jet, second: Jet) -> Jet:
    """``first`` where the condition holds, else ``second``; slopes are one-sided at the border."""
    return Jet(
        np.where(condition, first.value, second.value),
        np.where(condition, first.du, second.du),
        np.where(condition, first.dv, second.dv),
    )


def smooth_maximum(first: Jet, second: Jet, width: float) -> Jet:
    """max(a, b) with the crease |a − b| < width rounded by a parabola; at least the maximum.

    >>> a, b = variables(np.array([1.0]), np.array([1.0]))
    >>> float(smooth_maximum(a, b, 0.4).value[0])
    1.1
    """
    difference = (first.value - second.value) / width
    weight = np.clip(0.5 + 0.5 * difference, 0.0, 1.0)
    rounding = np.where(np.abs(difference) < 1.0, width * weight * (1.0 - weight), 0.0)
    return Jet(
        weight * first.value + (1.0 - weight) * second.value + rounding,
        weight * first.du + (1.0 - weight) * second.du,
        weight * first.dv + (1.0 - weight) * second.dv,
    )
