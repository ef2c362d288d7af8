from .capture import Capture as Capture
from .layouts.archive import write_archive as write_archive
from .layouts.diligent import write_diligent as write_diligent
from .loading import calibrate as calibrate
from .loading import load as load
