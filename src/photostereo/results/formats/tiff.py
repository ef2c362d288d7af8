"""Heights as 32-bit TIFF.

Every surface has them: see :func:`photostereo.results.maps.write_heights`.
"""

from photostereo.results.formats.format import Format

FORMAT = Format(
    title="TIFF",
    purpose="heights in 32 bits, for GIS and measuring",
    write=lambda job: {},
    of_surface=True,
    files=("depth.tiff",),
)
