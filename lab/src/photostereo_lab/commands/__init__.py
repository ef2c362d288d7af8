"""The commands that this package adds to photostereo: one file each, announced in its ``pyproject.toml``."""
