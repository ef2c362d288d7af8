from .mesh_files import write_mesh as write_mesh
from .pixel_size import PixelSize as PixelSize
from .surface_files import write_surface as write_surface
from .textured import TexturedMesh as TexturedMesh
from .textured import texture_mesh as texture_mesh
