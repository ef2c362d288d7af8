"""The version of the package, the same as photostereo's."""

__version__ = "0.1.0"
