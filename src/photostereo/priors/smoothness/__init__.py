"""The smoothness prior: neighboring normals are alike, except across edges."""
