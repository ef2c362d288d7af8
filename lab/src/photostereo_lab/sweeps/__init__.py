"""Sweeps over methods, parameters and noise."""
