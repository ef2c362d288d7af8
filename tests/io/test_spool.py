"""Arrays that wait on disk: back as they were, rows by rows, and nothing left behind."""

from __future__ import annotations

import numpy as np

from photostereo.io import spool
from photostereo.io.spool import Spool, open_spool


def test_arrays_come_back(tmp_path) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 65535, (7, 5, 3)).astype(np.uint16),
        rng.random((4, 9)).astype(np.float32)[:, ::2],
        rng.integers(0, 255, (3, 2)).astype(np.uint8),
    ]
    kept = Spool(tmp_path)
    places = [kept.write(array) for array in arrays]
    for place, array in zip(reversed(places), reversed(arrays), strict=True):
        assert np.array_equal(kept.read(place), array)
        assert kept.read(place).dtype == array.dtype
        assert np.array_equal(kept.read(place, slice(1, 3)), array[1:3])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_has_no_room(monkeypatch) -> None:
    assert open_spool(10**18) is None
    monkeypatch.setattr(spool, "_lies_in_memory", lambda folder: True)
    assert open_spool(1) is None
