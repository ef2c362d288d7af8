"""The version of the package: that of photostereo."""

__version__ = "0.1.0"
