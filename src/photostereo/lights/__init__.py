"""Where the light was: light files, and what a set of directions can see."""
