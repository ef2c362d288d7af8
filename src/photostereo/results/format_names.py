"""Names of the export formats, for help texts, without importing the formats themselves."""

#: Each is a module in :mod:`photostereo.results.formats`. To add a format, write the module and list it here.
FORMAT_NAMES = ("glb", "obj", "ply", "stl", "tiff", "exr", "material", "ptm", "relight")

#: Limits of the side of a material in texels: the minimum to show a pattern, the maximum for graphics cards.
LEAST_TEXELS, MOST_TEXELS = 32, 8192
