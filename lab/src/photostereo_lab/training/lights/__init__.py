"""The network that estimates unknown lights: :mod:`photostereo.lights.unknown.network` in torch, and its training."""
