"""One file per layout of a capture on disk, all behind :func:`photostereo.load`."""
