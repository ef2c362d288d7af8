from .calibrate import calibrate as calibrate
from .capture import Capture as Capture
from .corruptions import add_gaussian as add_gaussian
from .corruptions import add_poisson as add_poisson
from .corruptions import add_salt_and_pepper as add_salt_and_pepper
from .layouts.archive import write_archive as write_archive
from .layouts.diligent import write_diligent as write_diligent
from .loading import load as load
