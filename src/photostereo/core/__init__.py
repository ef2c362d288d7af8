"""Foundations: errors, control, conventions, units, parameters, plugins."""
