"""photostereo: robust photometric stereo.

From photographs of one object under known lights to its normals, albedo, depth and mesh::

    import photostereo as ps

    capture = ps.load("pmsData/catPNG")
    result = ps.solve(capture, method="pdlnv")
    error = ps.angular_error(result.normals, capture.truth, capture.mask)
    ps.save(result, "cat", capture)

The public names are imported when they are first used, so that ``photostereo --help`` answers at once.
"""

import lazy_loader as _lazy

from photostereo._version import __version__

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ = ["__version__", *__all__]
