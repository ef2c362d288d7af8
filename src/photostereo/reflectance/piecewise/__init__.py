"""A piecewise-linear reflectance curve per pixel."""
