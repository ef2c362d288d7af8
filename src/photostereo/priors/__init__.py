"""Priors on the normals: how neighbouring pixels constrain each other. Arrays only; one folder per prior."""
