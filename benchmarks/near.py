"""Near lights against distant ones: ``python -m benchmarks.near [--device cuda] [--methods ls,dlnet] [--size 128]``.

A wavy dome (:mod:`photostereo_lab.scenes.near`) under 12 and 20 lights at 1.5 to 6 object sizes, matte and glossy, with
1 % of noise, seen by an orthographic camera or one at 2.5 object sizes. For each method: the mean error in degrees under
near lights, as a multiple of that under the same lights infinitely far away, and the root mean square error of the depth
in percent of the object's size. "perspective" uses the near camera, with the object a fifth of its size above the origin
of the positions.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

import photostereo as ps
from photostereo.capture import Capture
from photostereo.solver.methods import find_method
from photostereo.solver.near import depth_of
from photostereo_lab.scenes import dome_lights
from photostereo_lab.scenes.near import RADIUS, render_near

DISTANCES = (1.5, 2.0, 3.0, 6.0)


def depth_error(result: ps.Reconstruction, capture: Capture, size: int) -> float:
    """Root mean square, in percent of the object's size, apart from a constant."""
    error = (depth_of(result.normals, capture) - capture.truth_depth)[capture.mask]
    return float(100 * error.std() / (RADIUS * size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--methods", default=",".join(ps.method_names()))
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--lights", default="12,20")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = [f"{k:g}" for k in DISTANCES] + ["perspective, 2"]
    print("| method | scene | lights | distant | " + " | ".join(heads) + " |")
    print("|---|---|---|---|" + "---|" * len(heads))
    for reflectance in ("lambertian", "ggx"):
        for count in map(int, options.lights.split(",")):
            dome, facts = (
                dome_lights(count, max_angle=45),
                {"reflectance": reflectance, "noise": 0.01},
            )
            scenes = [render_near(k * dome, size=options.size, **facts) for k in DISTANCES]
            scenes.append(
                render_near(
                    2 * dome,
                    size=options.size,
                    focal=2.5 * RADIUS * options.size,
                    base=0.2,
                    **facts,
                )
            )
            distant = render_near(2 * dome, size=options.size, distant=True, **facts)
            for method in options.methods.split(","):
                device = find_method(method).device_or_cpu(options.device)
                best = ps.solve(distant, method, device=device)
                mean = best.angular_error.mean
                cells = [f"{mean:.2f}° ({depth_error(best, distant, options.size):.2f} %)"]
                for scene in scenes:
                    found = ps.solve(scene, method, device=device)
                    ratio = found.angular_error.mean / mean
                    cells.append(f"{ratio:.2f} ({depth_error(found, scene, options.size):.2f} %)")
                material = "matte" if reflectance == "lambertian" else "glossy"
                print(
                    f"| `{method}` | {material} | {count} | " + " | ".join(cells) + " |", flush=True
                )
    print(f"numpy {np.__version__}, photostereo {ps.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
