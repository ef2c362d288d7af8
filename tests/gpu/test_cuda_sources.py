"""The CUDA sources compile, where there is a compiler; no GPU is needed for that."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import photostereo

SOURCES = Path(photostereo.__file__).parent
KERNELS = [
    ("priors/dictionary/dictionary_pass.cu", ["-DREAL=float", "-DLENGTH=192", "-DWARPS=16"]),
    ("priors/dictionary/dictionary_pass.cu", ["-DREAL=double", "-DLENGTH=45", "-DWARPS=16"]),
    ("priors/dictionary/follow_atoms.cu", ["-DREAL=float", "-DLENGTH=192", "-DWARPS=4"]),
    ("priors/dictionary/patches.cu", ["-DREAL=float"]),
    ("runtime/pixelwise.cu", []),
    ("reflectance/learned/set_network.cu", ["-DWIDTH=96", "-DTINY_LAYER=1e-05f"]),
    ("reflectance/learned/neighbors.cu", ["-DCUTOFF=8.0f"]),
    ("reflectance/sparse/sparse.cu", ["-DINTENSITY=float", "-DDIRECTION=double"]),
]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="NVIDIA's compiler nvcc is not installed")
@pytest.mark.parametrize(("file", "definitions"), KERNELS)
def test_compiles(file: str, definitions: list[str], tmp_path: Path) -> None:
    command = [
        "nvcc",
        "-arch=sm_80",
        "-ptx",
        "-o",
        tmp_path / "kernel.ptx",
        *definitions,
        SOURCES / file,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
