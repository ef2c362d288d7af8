"""A reflectance model, perhaps a prior, and block coordinate descent."""
