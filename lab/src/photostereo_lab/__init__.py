"""For researchers: sweeps, the paper, training, figures. A package of its own on top of photostereo."""
