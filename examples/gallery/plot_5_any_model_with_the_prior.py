"""
Any model with the dictionary prior
===================================

A method is a reflectance model, with or without a prior. Any pair works.
"""

import matplotlib.pyplot as plt

import photostereo as ps
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

capture = add_poisson(render_scene("vase", size=96, lights=dome_lights(20)), 10.0, rng=0)
names = ("ls", "pls", "l1", "sbl", "cbr")
alone = [ps.solve(capture, name).angular_error.mean for name in names]
paired = [ps.solve(capture, name, prior="dictionary").angular_error.mean for name in names]

figure, panel = plt.subplots(figsize=(6, 3), layout="constrained")
places = range(len(names))
panel.bar([x - 0.2 for x in places], alone, 0.4, label="alone", color="#999999")
panel.bar([x + 0.2 for x in places], paired, 0.4, label="with the dictionary", color="#d55e00")
panel.set_xticks(places, names)
panel.set_ylabel("mean error, degrees")
panel.legend()
