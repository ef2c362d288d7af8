"""
Shine
=====

A shiny vase. The piecewise-linear model bends its reflectance curve; the sparse one drops the highlights.
"""

import matplotlib.pyplot as plt

import photostereo as ps
from photostereo_lab.scenes import dome_lights, render_scene

capture = render_scene("vase", size=128, lights=dome_lights(32), reflectance="ggx")
names = ("ls", "pls", "sbl", "cbr")
errors = {name: ps.solve(capture, name).angular_error for name in names}

figure, panel = plt.subplots(figsize=(5, 3), layout="constrained")
panel.bar(names, [errors[name].mean for name in names], color="#0072b2")
panel.set_ylabel("mean error, degrees")
