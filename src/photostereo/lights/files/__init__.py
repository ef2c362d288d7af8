"""Light files: reading and writing."""
