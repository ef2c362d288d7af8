"""Files as such: written whole or not at all, and read with care where they come from outside."""
