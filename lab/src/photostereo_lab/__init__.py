"""Research tools on top of photostereo.

They are synthetic scenes, sweeps, the paper's experiments, training and figures.
"""
