from .comparison import write_comparison as write_comparison
from .page import write_report as write_report
from .surface_parts import renew_surface as renew_surface
from .viewing import find_report as find_report
from .viewing import open_report as open_report
from .viewing import serve as serve
