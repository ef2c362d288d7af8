from .comparison import write_comparison as write_comparison
from .page import write_report as write_report
from .serving import find_report as find_report
from .serving import open_report as open_report
from .serving import serve as serve
from .surface_parts import renew_surface as renew_surface
