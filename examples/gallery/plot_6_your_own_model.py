"""
Your own model
==============

A model is a class with four methods. It works with every prior, and with the contract tests. A package registers its
model through an entry point (``examples/plugin``); a script can solve the problem directly, as here.
"""

import numpy as np

from photostereo.diagnosis.metrics import angle_between
from photostereo.priors.entry import Setting, find_prior
from photostereo.reflectance.model import Fit, Model
from photostereo.solver.problem import Problem
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene


class Trimmed(Model):
    """Least squares without each pixel's darkest and brightest photograph."""

    def __init__(self, pixels, lights):
        keep = np.ones_like(pixels)
        rows = np.arange(len(pixels))
        keep[rows, pixels.argmin(1)] = keep[rows, pixels.argmax(1)] = 0
        self.gram = np.einsum("cj,nj,kj->nck", lights, keep, lights)
        self.moment = (keep * pixels) @ lights.T
        self.energy = (keep * pixels**2).sum()

    def mean_hessian(self, unknowns):
        return self.gram.mean(0)

    def alone(self, control):
        return Fit(np.linalg.solve(self.gram, self.moment[..., None])[..., 0])

    def update_normals(self, unknowns, weight, pull):
        systems = self.gram + weight[:, None, None] * np.eye(3)
        return np.linalg.solve(systems, (self.moment + pull)[..., None])[..., 0]

    def cost(self, normals, unknowns):
        square = np.einsum("nc,nck,nk->", normals, self.gram, normals)
        return square - 2 * (normals * self.moment).sum() + self.energy


capture = add_poisson(render_scene("relief", size=96, lights=dome_lights(16)), 12.0, rng=0)
pixels = capture.pixels(capture.intensity_scale()).astype(float)
model = Trimmed(pixels, capture.lights.matrix)
dictionary = find_prior("dictionary")
values = {parameter.name: parameter.default for parameter in dictionary.declared()}
setting = Setting(capture.mask, noise=0.08, hessian=model.mean_hessian({}))
prior, _ = dictionary.build(values, setting)
truth = capture.truth[capture.mask]
for name, problem in {"alone": Problem(model), "with the prior": Problem(model, prior)}.items():
    normals = problem.solve().normals
    print(f"{name}: {angle_between(normals, truth).mean():.2f} degrees")
