"""
Your own sweep
==============

A grid over λ and μ. The photographs are reduced to their statistics once; on a GPU the whole grid is solved at once.
For sweeps over captures, photographs, noise and methods, write a TOML file and run ``photostereo sweep``.
"""

import matplotlib.pyplot as plt
import numpy as np

import photostereo as ps
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

capture = add_poisson(render_scene("relief", size=72, lights=dome_lights(12)), 10.0, rng=0)
lams, mus = np.geomspace(0.3, 30, 5), np.geomspace(0.02, 0.5, 5)
settings = [{"lam": lam, "mu": mu} for lam in lams for mu in mus]
results = ps.solve_grid(capture, "dlnv", settings, max_iter=10)
table = np.array([result.angular_error.mean for result in results]).reshape(len(lams), len(mus))
automatic = ps.solve(capture, "dlnv", max_iter=10)

figure, panel = plt.subplots(figsize=(5, 3.6), layout="constrained")
image = panel.pcolormesh(mus, lams, table, cmap="viridis_r", shading="nearest")
panel.plot(
    automatic.parameters["mu"], automatic.parameters["lam"], "r+", markersize=14, label="automatic"
)
panel.set(xscale="log", yscale="log", xlabel="μ", ylabel="λ")
panel.legend()
figure.colorbar(image, label="mean error, degrees")
print(
    f"best of the grid {table.min():.2f} degrees, automatic {automatic.angular_error.mean:.2f} degrees"
)
