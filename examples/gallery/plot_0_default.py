"""
The default method
==================

Twelve noisy photographs of a glossy owl. The default combines a learned reflectance model with the dictionary prior,
and estimates its own error.
"""

import matplotlib.pyplot as plt
import numpy as np

import photostereo as ps
from photostereo.core.conventions import encode_normals
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

clean = render_scene("figure", size=160, lights=dome_lights(12), reflectance="ggx", color=True)
capture = add_poisson(clean, 15.0, rng=0)
plain = ps.solve(capture, "ls")
default = ps.solve(capture)
print(default)

# %%
# Normals. Least squares bends where the owl is glossy or in shadow.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
axes[0].imshow((capture.images[3] / capture.images[3].max()) ** (1 / 2.2))
axes[0].set_title("one photograph")
shown = {"truth": capture.truth, "ls": plain.normals, default.method: default.normals}
errors = {"ls": plain.angular_error, default.method: default.angular_error}
for panel, (name, normals) in zip(axes[1:], shown.items(), strict=True):
    panel.imshow(encode_normals(normals, capture.mask, bits=8))
    panel.set_title(f"{name}  {errors[name].mean:.1f}°" if name in errors else name)
for panel in axes:
    panel.axis("off")

# %%
# The error that the method expects, and the true one.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
expected_error = np.where(capture.mask, default.maps["spread"], np.nan)
true_error = ps.angular_error(default.normals, capture.truth, capture.mask)
for panel, name, error in zip(
    axes, ("expected", "true"), (expected_error, true_error), strict=True
):
    image = panel.imshow(error, vmin=0, vmax=25, cmap="viridis")
    panel.set_title(f"{name} error")
    panel.axis("off")
figure.colorbar(image, ax=axes, label="degrees", shrink=0.8)
