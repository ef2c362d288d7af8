"""photostereo: robust photometric stereo.

Estimate normals, albedo, depth and a mesh from photographs of one object under known lights::

    import photostereo as ps

    capture = ps.load("pmsData/catPNG")
    result = ps.solve(capture, method="pdlnv")
    error = ps.angular_error(result.normals, capture.truth, capture.mask)
    ps.save(result, "cat", capture)

Public names are imported on first use, so that ``photostereo --help`` responds at once.
"""

import lazy_loader as _lazy

from photostereo._version import __version__
from photostereo.core.display import Displayed as _Displayed

_Displayed.drawn_by = "photostereo.report.notebook"

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ = ["__version__", *__all__]
