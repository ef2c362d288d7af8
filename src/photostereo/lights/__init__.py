"""Where the light was: light files, balls that mirror the lamps, checks, and what a set of directions can see."""
