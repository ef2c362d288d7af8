"""A bivariate inverse reflectance per pixel."""
