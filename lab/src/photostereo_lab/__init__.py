"""For research: synthetic scenes, sweeps, the paper's experiments, training, figures. Stands on top of photostereo."""
