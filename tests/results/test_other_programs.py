"""The files in the programs that people open them with: Khronos' validator and Blender, where they can be had.

``npm install gltf-validator`` somewhere and set ``GLTF_VALIDATOR`` to that folder; ``pip install bpy`` into
this or another Python and set ``BLENDER_PYTHON`` to that one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from photostereo.core.units import PixelSize
from photostereo.results import write_mesh
from photostereo.results.formats.glb import encode_glb
from photostereo.results.formats.obj import encode_obj
from photostereo.results.textured import texture_mesh
from photostereo.surface import build_mesh, integrate

VALIDATE = """
const validator = require('gltf-validator');
const bytes = new Uint8Array(require('fs').readFileSync(process.argv[1]));
validator.validateBytes(bytes).then(report => console.log(JSON.stringify(report)));
"""

#: Opens a file in Blender and says what it has found, in world coordinates.
OPEN = """
import json, sys, bpy
path = sys.argv[1]
bpy.ops.wm.read_factory_settings(use_empty=True)
opener = {"glb": bpy.ops.import_scene.gltf, "obj": bpy.ops.wm.obj_import, "ply": bpy.ops.wm.ply_import,
          "stl": bpy.ops.wm.stl_import}[path.rsplit(".", 1)[1]]
opener(filepath=path)
(thing,) = [o for o in bpy.data.objects if o.type == "MESH"]
points = [thing.matrix_world @ v.co for v in thing.data.vertices]
linked = {}
for slot in thing.material_slots:
    for link in slot.material.node_tree.links:
        if link.from_node.type == "TEX_IMAGE":
            image = link.from_node.image
            linked[link.to_socket.name] = [*image.size, image.colorspace_settings.name]
        linked.setdefault("to:" + link.to_socket.name, link.from_node.type)
print("RESULT" + json.dumps({
    "low": [min(p[i] for p in points) for i in range(3)],
    "high": [max(p[i] for p in points) for i in range(3)],
    "triangles": len(thing.data.polygons),
    "uv": len(thing.data.uv_layers),
    "linked": linked,
    "normal": [sum(n.vector[i] for n in thing.data.corner_normals) for i in range(3)],
}))
"""


@pytest.fixture(scope="module")
def made(bumps):
    surface = integrate(bumps.normals, bumps.mask)
    return surface, texture_mesh(surface, bumps.normals, bumps.albedo, triangles=2000)


@pytest.fixture(scope="module")
def validate():
    """A function from a path to the report of Khronos' validator."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    places = [
        Path(os.environ.get("GLTF_VALIDATOR", ".")),
        *Path.cwd().parents,
        Path("/usr/local/lib"),
    ]
    folder = next((p for p in places if (p / "node_modules" / "gltf-validator").is_dir()), None)
    if folder is None:
        pytest.skip(
            "the npm package gltf-validator is absent: npm install it, set GLTF_VALIDATOR to its folder"
        )

    def run(path: Path) -> dict:
        done = subprocess.run(
            [node, "-e", VALIDATE, str(path)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def blender():
    """A function from a path to what Blender finds in it."""
    python = os.environ.get("BLENDER_PYTHON", sys.executable)
    found = subprocess.run(
        [python, "-c", "import bpy"], capture_output=True, timeout=120, check=False
    )
    if found.returncode != 0:
        pytest.skip("Blender is absent: pip install bpy into some Python, set BLENDER_PYTHON to it")

    def run(path: Path) -> dict:
        done = subprocess.run(
            [python, "-c", OPEN, str(path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "RESULT" in done.stdout, done.stdout + done.stderr
        return json.loads(done.stdout.split("RESULT", 1)[1].splitlines()[0])

    return run


def test_textured_glb_passes_the_validator(made, validate, tmp_path: Path) -> None:
    path = tmp_path / "mesh.glb"
    path.write_bytes(encode_glb(made[1], PixelSize.of("0.1mm"), name='<b>"hostile" ü</b>'))
    report = validate(path)
    assert report["issues"]["numErrors"] == 0, report["issues"]
    assert report["issues"]["numWarnings"] == 0, report["issues"]
    assert report["info"]["hasTextures"]
    assert report["info"]["totalTriangleCount"] == len(made[1].faces)


@pytest.mark.parametrize("base", [None, 1.0])
def test_colored_glb_passes_the_validator(
    bumps, made, validate, tmp_path: Path, base: float | None
) -> None:
    mesh = build_mesh(made[0], bumps.normals, bumps.albedo, base=base)
    issues = validate(write_mesh(mesh, tmp_path / "mesh.glb"))["issues"]
    assert (issues["numErrors"], issues["numWarnings"]) == (0, 0), issues


def test_blender_opens_the_textured_glb(bumps, made, blender, tmp_path: Path) -> None:
    path = tmp_path / "mesh.glb"
    path.write_bytes(encode_glb(made[1], PixelSize.of("0.1mm")))
    found = blender(path)
    low, high = made[1].vertices.min(axis=0) * 1e-4, made[1].vertices.max(axis=0) * 1e-4
    # Blender has z up: our y becomes z, and what faced the camera (+z) faces −y, Blender's front view.
    assert np.allclose(found["low"], [low[0], -high[2], low[1]], atol=1e-7)
    assert np.allclose(found["high"], [high[0], -low[2], high[1]], atol=1e-7)
    assert found["normal"][1] < 0 and abs(found["normal"][0]) < -found["normal"][1]
    height, width = made[1].albedo.shape[:2]
    assert found["linked"]["Base Color"] == [width, height, "sRGB"]
    assert found["linked"]["Color"] == [width, height, "Non-Color"]
    assert found["linked"]["to:Normal"] == "NORMAL_MAP"
    assert (found["triangles"], found["uv"]) == (len(made[1].faces), 1)


def test_blender_opens_the_textured_obj(made, blender, tmp_path: Path) -> None:
    for name, content in encode_obj(made[1], PixelSize.of("0.1mm")).items():
        (tmp_path / name).write_bytes(content)
    found = blender(tmp_path / "mesh.obj")
    low, high = made[1].vertices.min(axis=0) * 0.1, made[1].vertices.max(axis=0) * 0.1
    assert np.allclose(found["low"], [low[0], -high[2], low[1]], atol=1e-5)
    assert np.allclose(found["high"], [high[0], -low[2], high[1]], atol=1e-5)
    height, width = made[1].albedo.shape[:2]
    assert found["linked"]["Base Color"] == [width, height, "sRGB"]
    # Blender takes any picture of an OBJ for sRGB; the GLB says what it is.
    assert found["linked"]["Color"][:2] == [width, height]
    assert found["linked"]["to:Normal"] == "NORMAL_MAP"


@pytest.mark.parametrize("kind", ["ply", "stl"])
def test_blender_opens_plain_meshes(bumps, made, blender, tmp_path: Path, kind: str) -> None:
    mesh = build_mesh(made[0], bumps.normals, bumps.albedo, pixel_size=0.1)
    found = blender(write_mesh(mesh, tmp_path / f"mesh.{kind}"))
    assert np.allclose([found["low"], found["high"]], mesh.bounds, atol=1e-5)
    assert found["normal"][2] > 0
