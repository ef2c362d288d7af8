"""The dictionary prior on normals.

Patches, initial dictionaries, and the pass that learns atoms and codes.

The prior adds to a reflectance model the cost ::

    sum over patches j of  || P_j n - sum_i B[i, j] d_i ||^2  +  mu^2 ||B||_0,     |B| <= q,  ||d_i|| = 1

Array layouts, the same in every file of this folder:

==========  ===============  ==========================================================================
``n``       (N, 3)           albedo x normal of the N mask pixels, in the mask's row-major order
``P``       (w, m)           one row per patch, ``m = w_x w_y w_z`` values each
``D``       (K, m)           one **row** per atom, unit norm (the transpose of the paper's D)
``B``       (K, w)           the paper's B: row i holds atom i's code in every patch (the paper's g_i)
``R``       (w, m)           the residual ``P - B.T @ D``
==========  ===============  ==========================================================================
"""
