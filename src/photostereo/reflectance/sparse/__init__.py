"""Lambertian shading with errors in a few photographs."""
