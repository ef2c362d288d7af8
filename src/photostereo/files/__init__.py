"""Files as such: written whole or not at all."""
