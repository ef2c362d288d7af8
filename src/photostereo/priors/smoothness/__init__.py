"""The smoothness prior: neighboring normals are alike, except across edges.

The prior adds to a reflectance model the cost ::

    lam * sum over neighbors i, j of  phi(|n_i - n_j|),      phi(t) = t^2 up to delta, 2 delta t - delta^2 beyond

Huber's function: quadratic for differences that noise explains, and linear, as total variation, for edges.
"""
