"""
Noise
=====

Twenty noisy photographs. Least squares looks at each pixel alone; the dictionary prior lets neighbors help.
"""

import matplotlib.pyplot as plt

import photostereo as ps
from photostereo.core.conventions import encode_normals
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

clean = render_scene("figure", size=160, lights=dome_lights(20))
noisy = add_poisson(clean, 8.0, rng=0)
results = {name: ps.solve(noisy, name) for name in ("ls", "dlnv")}

# %%
# The truth first, then what each method made of the photographs.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
shown = {"truth": clean.truth, **{name: result.normals for name, result in results.items()}}
for panel, (name, normals) in zip(axes, shown.items(), strict=True):
    panel.imshow(encode_normals(normals, clean.mask, bits=8))
    error = "" if name == "truth" else f"  {results[name].angular_error.mean:.1f}°"
    panel.set_title(name + error)
    panel.axis("off")
