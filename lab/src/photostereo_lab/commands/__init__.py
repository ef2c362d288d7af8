"""The commands that this package adds to photostereo, one file each, declared in its ``pyproject.toml``."""
