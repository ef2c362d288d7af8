"""From a trained network to the archive that the package reads."""

from __future__ import annotations

import io

import numpy as np
from torch import nn

from photostereo.io.weight_digest import digest_of


def archive_of(network: nn.Module) -> bytes:
    """The bytes of a weights archive: float16 arrays under torch's names, and their digest."""
    arrays = {
        name.removeprefix("stages."): values.detach().cpu().numpy().astype(np.float16)
        for name, values in network.state_dict().items()
    }
    file = io.BytesIO()
    np.savez_compressed(file, digest=np.array(digest_of(arrays)), **arrays)
    return file.getvalue()
