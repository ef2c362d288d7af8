"""Solve a capture: a reflectance model, an optional prior, and block coordinate descent."""
