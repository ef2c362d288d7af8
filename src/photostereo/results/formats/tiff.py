"""Heights as 32-bit TIFF; every surface has them (:func:`photostereo.results.maps.write_heights`)."""

from photostereo.results.formats.format import Format

FORMAT = Format(lambda job: {}, of_surface=True, files=("depth.tiff",))
