"""
Shadows
=======

Cast shadows are outliers. A robust model recognizes them; its weights are in the result.
"""

import matplotlib.pyplot as plt
import numpy as np

import photostereo as ps
from photostereo_lab.scenes import render_scene, ring_lights

capture = render_scene("figure", size=160, lights=ring_lights(16))
results = {name: ps.solve(capture, name) for name in ("ls", "l1", "sbl")}
for name, result in results.items():
    print(f"{name}: mean error {result.angular_error.mean:.2f} degrees")

# %%
# The error of each method, and the share of the photographs that sparse Bayesian learning trusted.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
for panel, (name, result) in zip(axes, results.items(), strict=False):
    error = ps.angular_error(result.normals, capture.truth, capture.mask)
    image = panel.imshow(error, vmin=0, vmax=20, cmap="viridis")
    panel.set_title(f"error of {name}")
    panel.axis("off")
figure.colorbar(image, ax=axes[:3], label="degrees", shrink=0.8)
trusted = np.where(capture.mask, results["sbl"].maps["inliers"].mean(axis=-1), np.nan)
axes[3].imshow(trusted, cmap="gray", vmin=0, vmax=1)
axes[3].set_title("trusted by sbl")
axes[3].axis("off")
