"""Research tools on top of photostereo: synthetic scenes, sweeps, the paper's experiments, training, figures."""
