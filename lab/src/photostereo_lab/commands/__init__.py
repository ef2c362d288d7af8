"""The commands that this package adds to photostereo, one file each.

They are declared in its ``pyproject.toml``.
"""
