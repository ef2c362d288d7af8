"""Priors on the normals: how neighboring pixels constrain each other.

Arrays only; one folder per prior.
"""
