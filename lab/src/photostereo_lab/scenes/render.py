"""Render photographs of a shape under known lights, with exact ground truth.

A pixel with albedo ρ, normal n, under the light l, seen along v = (0, 0, 1), has the intensity

    I = exposure · π f(n, l, v; ρ) · max(0, n·l) · visible(l)

with a reflectance f of :mod:`photostereo_lab.scenes.brdf` and visible(l) = 0 in a cast shadow. For
a Lambertian surface without shadows that is exactly I = exposure · ρ · n·l.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.capture import Capture
from photostereo.core.conventions import gray_from_rgb
from photostereo.core.errors import ParameterError, require_known
from photostereo_lab.scenes.brdf import Brdf, Lambertian, brdf_named
from photostereo_lab.scenes.jets import Array
from photostereo_lab.scenes.lights import dome_lights
from photostereo_lab.scenes.owl import figure
from photostereo_lab.scenes.shadows import cast_shadow
from photostereo_lab.scenes.shapes import coin, fabric, plane, relief, sphere, step, vase
from photostereo_lab.scenes.surface import Size, Surface
from photostereo_lab.scenes.textures import TEXTURES, Rng, Texture, texture_named

#: The brightest value of a capture whose exposure is chosen automatically.
HEADROOM = 0.95


#: The shape and its default texture, by name.
SCENES: dict[str, tuple[Callable[[Size, Rng], Surface], str]] = {
    "figure": (lambda size, rng: figure(size), "painted"),
    "relief": (lambda size, rng: relief(size, rng=rng), "stone"),
    "coin": (lambda size, rng: coin(size, rng=rng), "uniform"),
    "fabric": (lambda size, rng: fabric(size), "uniform"),
    "sphere": (lambda size, rng: sphere(size), "marble"),
    "vase": (lambda size, rng: vase(size), "glaze"),
    "plane": (lambda size, rng: plane(size, slope=(0.2, 0.1)), "checker"),
    "step": (lambda size, rng: step(size), "uniform"),
}


def scene_names() -> tuple[str, ...]:
    """Names accepted by :func:`render_scene`.

    >>> scene_names()
    ('figure', 'relief', 'coin', 'fabric', 'sphere', 'vase', 'plane', 'step')
    """
    return tuple(SCENES)


def render_scene(
    name: str,
    *,
    size: Size = 256,
    lights: ArrayLike | None = None,
    reflectance: str | Brdf = "lambertian",
    texture: str | Texture | None = None,
    attached: bool = True,
    cast_shadows: bool = True,
    color: bool = False,
    exposure: float | None = None,
    max_tilt: float | None = None,
    rng: Rng = 0,
) -> Capture:
    """Render a named scene.

    Parameters
    ----------
    name : str
        One of :func:`scene_names`.
    size : int or (height, width)
        Size of the frame in pixels.
    lights : (d, 3), optional
        Directions to the lights; by default ``dome_lights(20)``. See
        :mod:`photostereo_lab.scenes.lights`.
    reflectance : str or Brdf
        ``"lambertian"``, ``"blinn-phong"``, ``"ggx"``, ``"oren-nayar"``, or a reflectance with its
        parameters.
    texture : str or callable, optional
        A name of :data:`photostereo_lab.scenes.textures.TEXTURES`, ``"painted"`` for the figure's
        own colors, or a function of points (N, 3) and rng; the default depends on the scene.
    attached : bool
        Whether surfaces that face away from a light are dark. If False, n·l may be negative, an
        idealization that no camera sees; for Lambertian reflectance only.
    cast_shadows : bool
        Whether parts cast shadows on one another.
    color : bool
        RGB photographs and albedo; otherwise their luma.
    exposure : float, optional
        Factor for all intensities; values above 1 are then clipped, as by a sensor. By default the
        largest intensity becomes 0.95 and nothing is clipped.
    max_tilt : float, optional
        Leave out pixels whose normal is farther than this many degrees from the viewing direction.
    rng : int or Generator
        Seed for the random parts of shape and texture.

    Returns
    -------
    Capture
        Includes true normals, depth (pixels, NaN outside the mask) and albedo (including exposure,
        so that a Lambertian pixel in full light shows albedo · n·l). The lights' strengths are all
        1.

    Examples
    --------
    >>> capture = render_scene("sphere", size=32, cast_shadows=False)
    >>> capture.images.shape, bool(capture.images.max() <= 1.0)
    ((20, 32, 32), True)
    """
    require_known(name, SCENES, "scene")
    shape, own_texture = SCENES[name]
    # Separate generators: a shape that draws more numbers must not change the texture.
    shape_rng, texture_rng = np.random.default_rng(rng).spawn(2)
    surface = shape(size, shape_rng)
    if max_tilt is not None:
        surface = surface.restrict(max_tilt)
    return render_surface(
        surface,
        dome_lights(20) if lights is None else lights,
        albedo=albedo_of(
            surface, own_texture if texture is None else texture, rng=texture_rng, color=color
        ),
        reflectance=reflectance,
        attached=attached,
        cast_shadows=cast_shadows,
        exposure=exposure,
        name=name,
    )


def albedo_of(
    surface: Surface, texture: str | Texture, *, rng: Rng = 0, color: bool = False
) -> Array:
    """Return the albedo of a surface, zero outside the mask.

    Parameters
    ----------
    surface : Surface
        The surface.
    texture : str or callable
        As for :func:`render_scene`.
    rng : int or Generator
        Seed of the texture.
    color : bool
        Return (H, W, 3) instead of (H, W).
    """
    albedo = np.zeros((*surface.mask.shape, 3))
    if texture == "painted":
        if surface.paint is None:
            raise ParameterError(
                'This shape has no colors, so it cannot have the texture "painted". Choose from '
                f"{', '.join(TEXTURES)}.",
                code="shape-without-colors",
            )
        albedo[surface.mask] = surface.paint[surface.mask]
    else:
        function = texture_named(texture) if isinstance(texture, str) else texture
        albedo[surface.mask] = function(surface.points[surface.mask], rng)
    if color:
        return albedo
    return np.asarray(gray_from_rgb(albedo), dtype=np.float64)


def render_surface(
    surface: Surface,
    lights: ArrayLike,
    *,
    albedo: Array,
    reflectance: str | Brdf = "lambertian",
    attached: bool = True,
    cast_shadows: bool = True,
    exposure: float | None = None,
    name: str = "scene",
) -> Capture:
    """Render any surface.

    Parameters
    ----------
    surface : Surface
        Depth and normals.
    lights : (d, 3) array
        Directions to the lights, in front of the object.
    albedo : (H, W) or (H, W, 3) array
        Linear, at most 1.
    reflectance, attached, cast_shadows, exposure
        As for :func:`render_scene`.
    name : str
        Name of the capture.

    Examples
    --------
    >>> from photostereo_lab.scenes.shapes import plane
    >>> wall = plane(4)
    >>> capture = render_surface(wall, dome_lights(5), albedo=np.full((4, 4), 0.5), exposure=1.0)
    >>> bool(np.allclose(capture.images[:, 0, 0], 0.5 * capture.lights.directions[:, 2]))
    True
    """
    brdf = brdf_named(reflectance) if isinstance(reflectance, str) else reflectance
    if not attached and not isinstance(brdf, Lambertian):
        raise ParameterError(
            "Only a Lambertian reflectance is defined for surfaces that face away from the "
            'light; keep attached shadows for the others, or choose reflectance="lambertian".',
            code="no-attached-shadows",
        )
    directions = _unit_lights(lights)
    normals = surface.normals[surface.mask]
    shades = albedo[surface.mask]
    images = np.zeros((len(directions), *albedo.shape), dtype=np.float32)

    def photograph(number: int) -> None:
        """Render one photograph before exposure, straight into its place.

        There is no second stack in memory.
        """
        light = directions[number]
        # Attached shadows are part of the shading; cast shadows need the depth.
        shading = _shading(normals, shades, light, brdf, attached)
        if cast_shadows:
            shading[cast_shadow(surface.depth, surface.mask, light)[surface.mask]] = 0.0
        images[number][surface.mask] = shading

    # Lights are independent, and both NumPy and the compiled march release the GIL.
    with ThreadPoolExecutor() as pool:
        list(pool.map(photograph, range(len(directions))))
    if exposure is None:
        brightest = float(images.max())
        exposure = HEADROOM / brightest if brightest > 0.0 else 1.0
        images *= np.float32(exposure)
    else:
        images *= np.float32(exposure)
        np.minimum(images, 1.0, out=images)
    return Capture(
        images=images,
        lights=directions,
        mask=surface.mask,
        name=name,
        truth=surface.normals,
        truth_depth=surface.depth,
        truth_albedo=exposure * albedo,
    )


def _unit_lights(lights: ArrayLike) -> Array:
    directions = np.array(lights, dtype=np.float64)
    if directions.ndim != 2 or directions.shape[1] != 3 or not (directions[:, 2] > 0.0).all():
        raise ParameterError(
            "The lights of a scene must be directions x y z, one row each, in front of the "
            "object (z above 0).",
            code="bad-scene-lights",
        )
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def _shading(
    normals: Array, albedo: Array, light: Array, brdf: Brdf, attached: bool
) -> NDArray[np.float64]:
    """π f · n·l for N pixels, shaped (N,) or (N, 3) like the albedo."""
    nl = normals @ light
    if not attached:
        return np.asarray((albedo.T * nl).T)
    lit = np.flatnonzero(nl > 0.0)
    diffuse, specular = brdf.terms(nl[lit], normals[lit, 2], np.broadcast_to(light[2], lit.shape))
    shading = np.zeros(albedo.shape)
    shading[lit] = ((albedo[lit].T * diffuse + specular) * nl[lit]).T
    return shading


def lambertian_reference(
    size: Size = 64, *, d: int = 12, color: bool = False, rng: Rng = 0
) -> Capture:
    """Return a capture on which Lambertian methods must be exact.

    It has texture, but no noise, shadows or highlights.

    Parameters
    ----------
    size : int or (height, width)
        Size of the frame in pixels.
    d : int
        Number of lights.
    color : bool
        RGB photographs and albedo.
    rng : int or Generator
        Seed of the texture.

    Notes
    -----
    The part of a sphere that faces the camera within 55 degrees, under lights within 25 degrees of
    the camera's axis: n·l ≥ cos 80° everywhere, and a convex shape casts no shadow on itself.
    Intensities are float32, so the normals are exact to about 1e-5 degrees.

    Examples
    --------
    >>> capture = lambertian_reference(32)
    >>> normals = capture.images[:, capture.mask].T @ np.linalg.pinv(capture.lights.matrix)
    >>> truth = capture.truth_albedo[capture.mask, None] * capture.truth[capture.mask]
    >>> bool(np.allclose(normals, truth, atol=1e-5))
    True
    """
    return render_scene(
        "sphere",
        size=size,
        lights=dome_lights(d, max_angle=25.0),
        texture="marble",
        max_tilt=55.0,
        cast_shadows=False,
        color=color,
        rng=rng,
    )
