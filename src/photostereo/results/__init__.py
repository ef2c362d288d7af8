"""Output files for other programs: textured meshes, materials, RTI files, maps and figures."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
