from .integrated import Surface as Surface
from .integration import integrate as integrate
from .mesh import Mesh as Mesh
from .mesh import build_mesh as build_mesh
