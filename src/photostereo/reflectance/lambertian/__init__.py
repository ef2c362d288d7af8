"""Least squares on the Lambertian model."""
