"""Solve parts as they arrive in a folder: one folder of photographs per part, in the order of the lights.

python examples/rig_folder.py my-rig.npz incoming results
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import cv2
import numpy as np

import photostereo as ps

SUFFIXES = {".png", ".tif", ".tiff", ".bmp"}


def main(file: str, incoming: str, results: str) -> None:
    rig = ps.load_rig(file)
    finished: set[str] = set()
    part = None
    while True:
        for folder in sorted(Path(incoming).iterdir()):
            pictures = sorted(p for p in folder.glob("*") if p.suffix.lower() in SUFFIXES)
            if folder.name in finished or len(pictures) < len(rig):
                continue
            images = np.stack([cv2.imread(str(p), cv2.IMREAD_ANYDEPTH) for p in pictures])
            part = rig.solve(images, out=part)
            target = Path(results) / folder.name
            target.mkdir(parents=True, exist_ok=True)
            np.save(target / "normals.npy", part.normals)
            finished.add(folder.name)
            print(f"{folder.name}: solved")
        time.sleep(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
