"""Research tools: sweeps, the paper's experiments, training, figures. A separate package on top of photostereo."""
