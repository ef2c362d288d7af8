"""photostereo."""
