"""Synthetic captures with exact truth: shapes, albedo textures, reflectances, attached and cast shadows.

>>> from photostereo import scenes
>>> capture = scenes.render_scene("vase", size=48, reflectance="ggx", lights=scenes.ring_lights(8))
>>> capture.name, len(capture)
('vase', 8)
"""

from photostereo.scenes.brdf import BRDFS, BlinnPhong, Ggx, Lambertian, OrenNayar
from photostereo.scenes.lights import dome_lights, place_lights, random_lights, ring_lights
from photostereo.scenes.owl import figure
from photostereo.scenes.render import (
    albedo_of,
    lambertian_reference,
    render_scene,
    render_surface,
    scene_names,
)
from photostereo.scenes.shapes import coin, fabric, plane, relief, sphere, step, vase

__all__ = [
    "BRDFS",
    "BlinnPhong",
    "Ggx",
    "Lambertian",
    "OrenNayar",
    "albedo_of",
    "coin",
    "dome_lights",
    "fabric",
    "figure",
    "lambertian_reference",
    "place_lights",
    "plane",
    "random_lights",
    "relief",
    "render_scene",
    "render_surface",
    "ring_lights",
    "scene_names",
    "sphere",
    "step",
    "vase",
]
