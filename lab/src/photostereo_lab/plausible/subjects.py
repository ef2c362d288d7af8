"""What stands before the camera: height, color and gloss of surfaces that fill the frame, and of objects on a ground.

Heights are in pixels, x points right and y up. A subject is a height field, so that its normals, shadows and ground
truth follow from one array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray
from photostereo_lab.scenes.jets import Array

Rng = np.random.Generator
Size = tuple[int, int]

#: Roughness of GGX for a lacquer, a satin coat and something nearly matte.
ROUGHNESS = (0.12, 0.25, 0.45)


@dataclass(frozen=True, eq=False)
class Subject:
    """A subject and the ground that it lies on."""

    kind: str
    height: Array  #: (H, W) in pixels
    mask: BoolArray  #: (H, W), True on the subject: the whole frame for a surface that fills it
    color: Array  #: (H, W, 3) linear albedo from 0 to 1
    gloss: Array  #: (H, W) strength of the coat: reflectance at normal incidence, 0 for matte
    roughness: float = 0.3  #: of the coat (GGX's alpha)
    facets: float = 0.0  #: slope of matte facets in radians (Oren-Nayar's sigma)

    @property
    def fills_the_frame(self) -> bool:
        """Whether the subject is a surface without a ground."""
        return bool(self.mask.all())

    @property
    def normals(self) -> Array:
        """(H, W, 3) unit normals of the height field."""
        down, right = np.gradient(self.height)
        normals = np.stack([-right, down, np.ones_like(right)], axis=-1)
        return np.asarray(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def subject_kinds() -> tuple[str, ...]:
    """Names of all kinds, surfaces first."""
    return (*SURFACES, *OBJECTS)


def make_subject(kind: str, size: Size, rng: Rng) -> Subject:
    """Make a subject of a kind.

    Parameters
    ----------
    kind : str
        One of :func:`subject_kinds`.
    size : (int, int)
        Height and width of the frame in pixels.
    rng : Generator
        Source of all randomness.

    Returns
    -------
    Subject
    """
    if kind in SURFACES:
        return SURFACES[kind](size, rng)
    return OBJECTS[kind](size, rng)


# Building blocks.


def rough(size: Size, rng: Rng, length: float, roughness: float = 1.0) -> Array:
    """Random relief of standard deviation 1 whose largest features have this length in pixels.

    Parameters
    ----------
    size : (int, int)
        Height and width.
    rng : Generator
        Source of randomness.
    length : float
        Wavelength of the largest features.
    roughness : float
        Slope of the spectrum: 1 is rugged as stone, 2 and more is smooth.
    """
    rows = np.fft.fftfreq(size[0])[:, None]
    columns = np.fft.rfftfreq(size[1])[None, :]
    frequency = np.hypot(rows, columns) * length
    spectrum = np.fft.rfft2(rng.standard_normal(size))
    field = np.fft.irfft2(spectrum / (1.0 + frequency**2) ** roughness, s=size)
    return np.asarray(field / max(field.std(), 1e-12))


def with_slope(field: Array, degrees: float) -> Array:
    """Scale a relief so that its mean slope is this many degrees."""
    down, right = np.gradient(field)
    slope = np.hypot(down, right).mean()
    return np.asarray(field * (np.tan(np.deg2rad(degrees)) / max(slope, 1e-12)))


def blurred(field: Array, sigma: float) -> Array:
    """Blur with a Gaussian of this standard deviation in pixels."""
    return np.asarray(cv2.GaussianBlur(field, (0, 0), sigma, borderType=cv2.BORDER_REFLECT))


def grid(size: Size) -> tuple[Array, Array]:
    """Coordinates of the pixels in shorter sides, 0 in the middle: x to the right, y up."""
    side = min(size)
    rows, columns = np.mgrid[: size[0], : size[1]].astype(np.float64)
    return (columns - 0.5 * (size[1] - 1)) / side, (0.5 * (size[0] - 1) - rows) / side


def tint(size: Size, rng: Rng, contrast: float = 0.15) -> Array:
    """A random color, slightly mottled."""
    base = rng.uniform(0.25, 0.8, 3)
    mottled = 1.0 + contrast * rough(size, rng, min(size) / 4)[..., None]
    return np.clip(base * mottled, 0.03, 0.95)


def painted(size: Size, rng: Rng, colors: int = 5) -> Array:
    """Patches of several colors with soft borders, as in a painting or a mosaic."""
    layers = np.stack([rough(size, rng, min(size) / 3) for _ in range(colors)])
    palette = rng.uniform(0.04, 0.9, (colors, 3))
    patches = palette[np.argmax(layers, axis=0)]
    return np.clip(
        blurred(patches, 1.0) * (1 + 0.08 * rough(size, rng, 8.0)[..., None]), 0.02, 0.95
    )


def even(size: Size, value: float) -> Array:
    """The same value everywhere."""
    return np.full(size, value)


def lettering(size: Size, rng: Rng) -> Array:
    """Lines of text, 1 inside the strokes and 0 outside."""
    page = np.zeros(size, np.uint8)
    line = max(min(size) // int(rng.integers(4, 7)), 14)
    for baseline in range(line, size[0] + line, int(1.4 * line)):
        words = "".join(rng.choice(list("ABCDEFHIKLMNOPRSTVX"), 40))
        place = (-int(rng.integers(0, line)), baseline)
        thickness = max(line // 9, 1)
        cv2.putText(page, words, place, cv2.FONT_HERSHEY_COMPLEX, line / 26, 255, thickness)
    return np.asarray(page / 255.0)


def bosses(size: Size, rng: Rng, count: int) -> Array:
    """Round domes such as rivets, scrolls and berries: what looks like balls; heights in shorter sides."""
    x, y = grid(size)
    height = np.zeros(size)
    for _ in range(count):
        radius = rng.uniform(0.05, 0.16)
        center = rng.uniform(-0.5, 0.5, 2) * (size[1] / min(size), size[0] / min(size))
        squared = radius**2 - (x - center[0]) ** 2 - (y - center[1]) ** 2
        height = np.maximum(height, rng.uniform(0.4, 0.9) * np.sqrt(np.maximum(squared, 0.0)))
    return height


# Surfaces that fill the frame.


def _surface(
    kind: str,
    height: Array,
    color: Array,
    gloss: float = 0.0,
    roughness: float = 0.3,
    facets: float = 0.0,
) -> Subject:
    size = height.shape[:2]
    return Subject(
        kind=kind,
        height=height,
        mask=np.ones(size, bool),
        color=color,
        gloss=even(size, gloss),
        roughness=roughness,
        facets=facets,
    )


def smooth_relief(size: Size, rng: Rng) -> Subject:
    """A gently rolling surface without edges."""
    height = with_slope(rough(size, rng, min(size) / 2, 2.5), rng.uniform(3, 18))
    return _surface("smooth relief", height, tint(size, rng, 0.05))


def stone_relief(size: Size, rng: Rng) -> Subject:
    """A carved stone with bosses and a rugged skin."""
    carved = min(size) * blurred(bosses(size, rng, int(rng.integers(3, 9))), 1.5)
    skin = with_slope(rough(size, rng, 20.0), rng.uniform(2, 6))
    rolling = with_slope(rough(size, rng, min(size) / 3, 2.0), rng.uniform(3, 12))
    return _surface("stone relief", carved + skin + rolling, tint(size, rng), facets=0.35)


def shallow_relief(size: Size, rng: Rng) -> Subject:
    """A skin-deep relief: a medal, a leather cover, an embossed sheet."""
    height = with_slope(rough(size, rng, min(size) / 6, 1.5), rng.uniform(0.5, 3))
    return _surface(
        "shallow relief", height, tint(size, rng), gloss=0.04, roughness=rng.choice(ROUGHNESS)
    )


def painting(size: Size, rng: Rng) -> Subject:
    """A varnished painting: weave, brush strokes and craquelure of a degree or two."""
    x, y = grid(size)
    thread = min(size) / rng.uniform(60, 140)
    weave = np.cos(2 * np.pi * x * min(size) / thread) * np.cos(2 * np.pi * y * min(size) / thread)
    strokes = rough(size, rng, 12.0)
    cracks = -np.exp(-((rough(size, rng, min(size) / 8) / 0.04) ** 2))
    height = with_slope(0.3 * weave + strokes + blurred(cracks, 0.8), rng.uniform(0.5, 2.5))
    gloss = float(rng.choice([0.0, 0.04, 0.05]))
    return _surface("painting", height, painted(size, rng), gloss, float(rng.choice(ROUGHNESS)))


def canvas(size: Size, rng: Rng) -> Subject:
    """A nearly flat sheet: paper, gold leaf, a primed canvas."""
    height = with_slope(rough(size, rng, 10.0, 1.2), rng.uniform(0.3, 1.2))
    gloss = float(rng.choice([0.0, 0.04, 0.3]))
    return _surface("canvas", height, tint(size, rng), gloss, float(rng.choice(ROUGHNESS)))


def fabric(size: Size, rng: Rng) -> Subject:
    """A coarse woven cloth with a fold."""
    x, y = grid(size)
    threads = rng.uniform(12, 40)
    over = np.sign(np.sin(np.pi * threads * x) * np.sin(np.pi * threads * y))
    yarn = np.where(
        over > 0, np.abs(np.sin(np.pi * threads * y)), np.abs(np.sin(np.pi * threads * x))
    )
    fold = with_slope(rough(size, rng, min(size) / 2, 2.5), rng.uniform(1, 6))
    height = with_slope(blurred(yarn, 1.0), rng.uniform(6, 18)) + fold
    return _surface("fabric", height, tint(size, rng), facets=0.4)


def inscription(size: Size, rng: Rng) -> Subject:
    """Letters cut into stone or raised on metal."""
    strokes = blurred(lettering(size, rng), max(min(size) / 250, 0.8))
    depth = rng.choice([-1.0, 1.0]) * min(size) * rng.uniform(0.004, 0.012)
    skin = with_slope(rough(size, rng, 15.0), rng.uniform(0.5, 3))
    gloss = float(rng.choice([0.0, 0.04]))
    return _surface("inscription", depth * strokes + skin, tint(size, rng), gloss)


def coin_close_up(size: Size, rng: Rng) -> Subject:
    """A coin that is larger than the frame, of metal or worn."""
    figure = blurred(bosses(size, rng, 5), 2.0) + 0.02 * blurred(lettering(size, rng), 1.2)
    height = with_slope(figure, rng.uniform(3, 10))
    gloss = float(rng.choice([0.04, 0.5]))
    return _surface("coin close-up", height, tint(size, rng, 0.05), gloss, 0.35)


def bark(size: Size, rng: Rng) -> Subject:
    """Bark or broken rock: deep, rugged, full of shadows."""
    ridges = np.abs(rough(size, rng, min(size) / 5)) + 0.4 * rough(size, rng, 12.0)
    height = with_slope(blurred(ridges, 1.0), rng.uniform(15, 30))
    return _surface("bark", height, tint(size, rng, 0.3), facets=0.5)


def bricks(size: Size, rng: Rng) -> Subject:
    """A wall or a mosaic: tiles of several colors with joints."""
    x, y = grid(size)
    rows = rng.uniform(4, 9)
    row = np.floor(rows * y)
    joint_y = np.abs((rows * y) % 1 - 0.5)
    joint_x = np.abs((rows * x / 2 + 0.5 * (row % 2)) % 1 - 0.5)
    tile = (joint_y < 0.44) & (joint_x < 0.47)
    raised = blurred(tile.astype(np.float64), max(min(size) / 200, 1.0))
    height = min(size) * rng.uniform(0.005, 0.015) * raised + with_slope(rough(size, rng, 9.0), 3.0)
    shade = 0.8 + 0.2 * np.sin(12.9 * row + 78.2 * np.floor(rows * x / 2 + 0.5 * (row % 2)))
    return _surface("bricks", height, np.clip(tint(size, rng) * shade[..., None], 0.03, 0.95))


# Objects on a ground.


def _on_ground(
    kind: str,
    height: Array,
    mask: BoolArray,
    color: Array,
    rng: Rng,
    gloss: float = 0.0,
    roughness: float = 0.3,
    facets: float = 0.0,
) -> Subject:
    """Lay an object on a dark cloth, a bright table or a textured carpet."""
    size = height.shape[:2]
    ground = {
        "dark": np.full((*size, 3), 0.012),
        "bright": np.full((*size, 3), 0.6),
        "textured": painted(size, rng),
    }[str(rng.choice(["dark", "bright", "textured"], p=[0.5, 0.25, 0.25]))]
    return Subject(
        kind=kind,
        height=np.where(mask, np.maximum(height, 0.0), 0.0),
        mask=mask,
        color=np.where(mask[..., None], color, ground),
        gloss=np.where(mask, gloss, 0.0),
        roughness=roughness,
        facets=facets,
    )


def _blob(size: Size, rng: Rng, center: tuple[float, float], radius: float) -> Array:
    """A rounded solid with a bumpy skin: height in shorter sides, negative outside."""
    x, y = grid(size)
    angle = np.arctan2(y - center[1], x - center[0])
    lobes = 1 + 0.12 * np.sin(int(rng.integers(2, 6)) * angle + rng.uniform(0, 6))
    # Relative to the outline, so that the lobes vanish toward the middle and leave no cusp there.
    relative = np.hypot(x - center[0], y - center[1]) / (lobes * radius)
    dome = radius * np.sqrt(np.maximum(1 - relative**2, 0.0)) * rng.uniform(0.5, 1.0)
    return np.asarray(np.where(relative < 1, dome, -1.0))


def solid(size: Size, rng: Rng) -> Subject:
    """One rounded object in the middle."""
    dome = _blob(size, rng, (0.0, 0.0), rng.uniform(0.25, 0.42))
    skin = 0.01 * blurred(rough(size, rng, min(size) / 8, 1.5), 1.5)
    height = min(size) * (dome + skin * (dome > 0.03))
    gloss = float(rng.choice([0.0, 0.05]))
    roughness = float(rng.choice(ROUGHNESS))
    return _on_ground("solid", height, dome > 0, tint(size, rng), rng, gloss, roughness)


def several(size: Size, rng: Rng) -> Subject:
    """Several objects side by side, such as finds on a tray."""
    wide = 0.5 * size[1] / min(size)
    height = np.full(size, -1.0)
    for column in np.linspace(-wide, wide, int(rng.integers(3, 5)))[1:-1]:
        center = (float(column), float(rng.uniform(-0.15, 0.15)))
        height = np.maximum(height, _blob(size, rng, center, rng.uniform(0.12, 0.2)))
    return _on_ground("several", min(size) * height, height > 0, tint(size, rng), rng, facets=0.3)


def ring(size: Size, rng: Rng) -> Subject:
    """A ring or a bracelet: an object with a hole."""
    x, y = grid(size)
    radius = rng.uniform(0.25, 0.33)
    thickness = rng.uniform(0.07, 0.12)
    squared = thickness**2 - (np.hypot(x, y) - radius) ** 2
    height = np.sqrt(np.maximum(squared, 0.0))
    return _on_ground(
        "ring", min(size) * height, squared > 0, tint(size, rng), rng, gloss=0.05, roughness=0.3
    )


def coin(size: Size, rng: Rng) -> Subject:
    """A whole coin with a raised rim on a table."""
    x, y = grid(size)
    radius = rng.uniform(0.3, 0.45)
    distance = np.hypot(x, y)
    rim = 0.02 * np.exp(-(((distance - 0.93 * radius) / 0.015) ** 2))
    face = 0.25 * blurred(bosses(size, rng, 4), 2.0) + rim + 0.03
    mask = distance < radius
    gloss = float(rng.choice([0.04, 0.5]))
    return _on_ground("coin", min(size) * face, mask, tint(size, rng, 0.05), rng, gloss, 0.35)


def leaf(size: Size, rng: Rng) -> Subject:
    """A leaf, thin and nearly flat, with veins."""
    x, y = grid(size)
    outline = 0.4 - np.abs(y) - 0.9 * x**2
    veins = 0.004 * np.cos(45 * (np.abs(y) + x)) + 0.01 * np.exp(-((y / 0.01) ** 2))
    curl = 0.1 * x**2 + 0.02
    return _on_ground(
        "leaf", min(size) * (curl + veins), outline > 0.1, tint(size, rng), rng, gloss=0.04
    )


def fossil(size: Size, rng: Rng) -> Subject:
    """A spiral shell in relief on a slab whose outline is broken."""
    x, y = grid(size)
    distance = np.hypot(x, y)
    turns = np.cos(np.arctan2(y, x) + 30 * distance)
    spiral = 0.03 * np.clip(turns, 0, None) * (distance < 0.3)
    slab = 0.42 + 0.03 * rough(size, rng, min(size) / 3, 2.0)
    height = 0.06 + blurred(spiral, 1.5)
    return _on_ground(
        "fossil", min(size) * height, distance < slab, tint(size, rng), rng, facets=0.4
    )


def cut_by_the_frame(size: Size, rng: Rng) -> Subject:
    """A large object that the frame cuts off on two sides."""
    center = (-0.25 * size[1] / min(size), -0.25)
    dome = _blob(size, rng, center, rng.uniform(0.5, 0.62))
    return _on_ground(
        "cut by the frame", min(size) * dome, dome > 0, tint(size, rng), rng, facets=0.2
    )


def small(size: Size, rng: Rng) -> Subject:
    """A small object in a large frame."""
    center = (float(rng.uniform(-0.2, 0.2)), float(rng.uniform(-0.2, 0.2)))
    dome = _blob(size, rng, center, rng.uniform(0.08, 0.14))
    return _on_ground("small", min(size) * dome, dome > 0, tint(size, rng), rng)


Maker = Callable[[Size, Rng], Subject]
SURFACES: dict[str, Maker] = {
    "smooth relief": smooth_relief,
    "stone relief": stone_relief,
    "shallow relief": shallow_relief,
    "painting": painting,
    "canvas": canvas,
    "fabric": fabric,
    "inscription": inscription,
    "coin close-up": coin_close_up,
    "bark": bark,
    "bricks": bricks,
}
OBJECTS: dict[str, Maker] = {
    "solid": solid,
    "several": several,
    "ring": ring,
    "coin": coin,
    "leaf": leaf,
    "fossil": fossil,
    "cut by the frame": cut_by_the_frame,
    "small": small,
}
