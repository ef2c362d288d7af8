"""The names of the export formats, known without importing any of them: help texts list them."""

#: Each is a module in :mod:`photostereo.results.formats`. To add a format, write the module and name it here.
FORMAT_NAMES = ("glb", "obj", "ply", "stl", "tiff", "exr", "material", "ptm", "relight")

#: Texels along a side of a material: the least that shows a pattern, and the most that graphics cards take.
LEAST_TEXELS, MOST_TEXELS = 32, 8192
