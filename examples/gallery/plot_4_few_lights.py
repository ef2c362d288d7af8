"""
Few lights
==========

How many photographs are enough? The same noise, 4 to 32 photographs.
"""

import matplotlib.pyplot as plt

import photostereo as ps
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

everything = add_poisson(render_scene("relief", size=96, lights=dome_lights(32)), 12.0, rng=0)
counts = (4, 6, 8, 12, 20, 32)
figure, panel = plt.subplots(figsize=(5, 3), layout="constrained")
for name in ("ls", "dlnv"):
    means = [ps.solve(everything.take(count, rng=1), name).angular_error.mean for count in counts]
    panel.plot(counts, means, marker="o", label=name)
panel.set_xlabel("photographs")
panel.set_ylabel("mean error, degrees")
panel.legend()
