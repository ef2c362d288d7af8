"""Sound captures of every layout, results, saved states and plans, small enough to be copied for each run."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np
import scipy.io
import tifffile
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

import photostereo as ps
from photostereo.capture import write_archive, write_diligent
from photostereo_lab.scenes import place_lights, render_scene

SIZE = 16
PHOTOGRAPHS = 6

#: Settings that make a dictionary fit the tiny captures.
SMALL = ("--set", "patch=4x4x3", "--set", "stride=2", "--set", "max_iter=2")


def build_templates(home: Path) -> None:
    """One folder per template under ``home``; ``capture`` inside is what the commands are given."""
    scene = render_scene("sphere", size=SIZE, lights=place_lights("dome", PHOTOGRAPHS, rng=0))
    color = render_scene(
        "sphere", size=SIZE, lights=place_lights("dome", PHOTOGRAPHS, rng=0), color=True
    )
    write_diligent(color, home / "diligent" / "capture")
    write_archive(scene, home / "archive" / "capture.npz")
    write_archive(color, home / "archive-color" / "capture.npz")
    for name, suffix, lights in (
        ("folder-csv", ".png", "lights.csv"),
        ("folder-json", ".tif", "lights.json"),
        ("folder-txt", ".jpg", "lights.txt"),
        ("folder-bmp", ".bmp", "lights.csv"),
        ("folder-pgm", ".pgm", "lights.txt"),
    ):
        _write_folder(home / name / "capture", scene, suffix, lights)
    _write_exif(home / "folder-exif" / "capture", scene)
    _write_harvard(home / "harvard" / "capture", scene)
    _write_rti(home / "rti" / "capture", scene)
    _write_results(home, scene)
    _write_further(home, scene)
    shutil.copytree(home / "folder-exif", home / "app")
    shutil.copytree(home / "further" / "shown", home / "app" / "capture" / "results" / "ls")


LAYOUTS = (
    *(
        "diligent",
        "archive",
        "archive-color",
        "folder-csv",
        "folder-json",
        "folder-txt",
        "folder-bmp",
    ),
    *("folder-pgm", "folder-exif", "harvard", "rti"),
)


def capture_in(folder: Path) -> Path:
    """What the commands are given: the folder or the archive."""
    archive = folder / "capture.npz"
    return archive if archive.exists() else folder / "capture"


def _pictures(scene: ps.Capture, bits: int = 8) -> list[np.ndarray]:
    top, kind = (255, np.uint8) if bits == 8 else (65535, np.uint16)
    return [np.rint(np.clip(image, 0, 1) * top).astype(kind) for image in scene.images]


def _write_folder(folder: Path, scene: ps.Capture, suffix: str, lights: str) -> None:
    folder.mkdir(parents=True)
    names = [f"shot{number}{suffix}" for number in range(len(scene))]
    for name, picture in zip(
        names, _pictures(scene, 16 if suffix in (".png", ".tif") else 8), strict=True
    ):
        if suffix == ".tif":
            tifffile.imwrite(folder / name, picture, compression="zlib" if name > "shot2" else None)
        else:
            cv2.imwrite(str(folder / name), picture)
    cv2.imwrite(str(folder / "mask.png"), scene.mask.astype(np.uint8) * 255)
    if lights.endswith(".csv"):
        rows = [
            f"{name},{x},{y},{z},1.5"
            for name, (x, y, z) in zip(names, scene.lights.directions, strict=True)
        ]
        (folder / lights).write_text("file,x,y,z,intensity\n" + "\n".join(rows) + "\n")
    elif lights.endswith(".json"):
        entries = [
            {"file": name, "direction": list(light), "intensity": 1.0}
            for name, light in zip(names, scene.lights.directions.tolist(), strict=True)
        ]
        (folder / lights).write_text(json.dumps({"lights": entries}))
    else:
        np.savetxt(folder / lights, scene.lights.directions)


def _write_exif(folder: Path, scene: ps.Capture) -> None:
    """Photographs as a camera writes them, an ambient one among them."""
    folder.mkdir(parents=True)
    for number, picture in enumerate([*_pictures(scene), np.zeros((SIZE, SIZE), np.uint8)]):
        exif = Image.Exif()
        exif.get_ifd(0x8769).update(
            {33434: IFDRational(1, 8 + number), 34855: 100, 37386: IFDRational(50)}
        )
        name = f"shot{number}.jpg" if number < len(scene) else "ambient.jpg"
        Image.fromarray(picture).save(folder / name, exif=exif)
    np.savetxt(folder / "lights.txt", scene.lights.directions)


def _write_harvard(folder: Path, scene: ps.Capture) -> None:
    (folder / "Objects").mkdir(parents=True)
    for number, picture in enumerate(_pictures(scene), 1):
        cv2.imwrite(str(folder / "Objects" / f"Image_{number:02d}.png"), picture)
    np.savetxt(folder / "refined_light.txt", 1.5 * scene.lights.matrix, delimiter=",")
    np.savetxt(folder / "light_directions.txt", scene.lights.matrix)


def _write_rti(folder: Path, scene: ps.Capture) -> None:
    (folder / "jpeg-exports").mkdir(parents=True)
    lines = [str(len(scene))]
    for number, (picture, light) in enumerate(
        zip(_pictures(scene), scene.lights.directions, strict=True)
    ):
        cv2.imwrite(str(folder / "jpeg-exports" / f"my coin {number}.jpg"), picture)
        lines.append(f"C:\\RTI\\my coin {number}.jpg {light[0]} {light[1]} {light[2]}")
    (folder / "coin.lp").write_text("\n".join(lines) + "\n")


def _write_results(home: Path, scene: ps.Capture) -> None:
    """Beside a sound capture: what ``mesh``, ``--resume``, ``dictionary`` and ``--mask`` are given."""

    folder = home / "results"
    write_archive(scene, folder / "capture.npz")
    options = {"patch": (4, 4, 3), "stride": 2, "max_iter": 2}
    result = ps.solve(scene, "dlnv", checkpoint=folder / "state.npz", **options)
    ps.save(result, folder / "solved", scene, report=False)
    shutil.copy(folder / "solved" / "dictionary.npy", folder / "dictionary.npy")
    shutil.copy(folder / "solved" / "normals.png", folder / "normals.png")
    cv2.imwrite(str(folder / "mask.png"), scene.mask.astype(np.uint8))
    _write_lights(folder, scene.lights.directions)


def _write_further(home: Path, scene: ps.Capture) -> None:
    """What the newer commands are given: weights, a comparison, the stores of a sweep and a batch, a page."""
    from photostereo.cli import main
    from photostereo.reflectance.learned import weights

    folder = home / "further"
    shutil.copytree(home / "results", folder)
    shutil.copy(Path(weights.__file__).with_name("weights.npz"), folder / "weights.npz")
    (folder / "plan.toml").write_text(
        'name = "x"\ncaptures = ["capture.npz"]\nseeds = 1\n[[methods]]\nname = "ls"\n'
    )
    for number in range(2):
        write_archive(scene, folder / "captures" / f"{number}.npz")
    one = ["--workers", "1"]
    for words in (
        ["compare", folder / "capture.npz", "--methods", "ls,l1", "--out", folder / "compared"],
        ["solve", folder / "capture.npz", "--method", "ls", "--out", folder / "shown"],
        ["sweep", folder / "plan.toml", "--data", folder, "--out", folder / "swept", *one],
        ["batch", folder / "captures", "--out", folder / "batched", "--method", "ls", *one],
    ):
        sys.argv = ["photostereo", *map(str, words)]
        with suppress(SystemExit):
            main()


def _write_lights(folder: Path, lights: np.ndarray) -> None:
    """The same lights as numbers, as MATLAB's and as Meshroom's."""
    np.savetxt(folder / "lights.txt", lights)
    scipy.io.savemat(folder / "lights.mat", {"light_directions": lights})
    entries = [
        {
            "viewId": str(n),
            "type": "directional",
            "direction": [str(x), str(-y), str(-z)],
            "intensity": ["1"] * 3,
        }
        for n, (x, y, z) in enumerate(lights)
    ]
    (folder / "meshroom.json").write_text(json.dumps({"lights": entries}))
