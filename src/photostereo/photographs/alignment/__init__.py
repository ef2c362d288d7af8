"""Camera movement between photographs: estimated under changing light, reported, and undone."""
