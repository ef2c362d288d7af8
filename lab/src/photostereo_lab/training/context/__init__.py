"""The network that sees whole objects: :mod:`photostereo.reflectance.learned.context` in torch, and its training."""
