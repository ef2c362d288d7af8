"""Integrate normals into a surface and build meshes.

File output is in :mod:`photostereo.results`.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
