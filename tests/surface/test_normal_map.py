"""Normal maps of other tools are read as they are meant."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.results import read_normal_map
from photostereo.surface import integrate


def test_normal_map_of_another_tool(shapes, tmp_path: Path) -> None:
    """8 bits with a mask beside it, and with an alpha channel, give the surface to the rounding of 8 bits."""
    truth, normals, mask, _ = shapes.sphere(61, 0.8)
    rgb = np.rint((np.where(mask[..., None], normals, [0, 0, 1]) + 1) * 127.5).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "n.png"), rgb[..., ::-1])
    cv2.imwrite(str(tmp_path / "mask.png"), 255 * mask.astype(np.uint8))
    alpha = np.dstack([rgb[..., ::-1], 255 * mask.astype(np.uint8)])
    cv2.imwrite(str(tmp_path / "alpha.png"), alpha)
    for source, beside in (("n.png", tmp_path / "mask.png"), ("alpha.png", None)):
        read, inside = read_normal_map(tmp_path / source, beside)
        assert (inside == mask).all()
        depth = integrate(read, inside).depth
        assert np.abs(shapes.aligned(depth, truth, mask)).max() < 0.2


def test_normal_map_errors(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as caught:
        read_normal_map(tmp_path / "absent.png")
    assert caught.value.code == "missing-file"
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(CaptureError) as caught:
        read_normal_map(tmp_path / "text.png")
    assert caught.value.code == "damaged-image"
    cv2.imwrite(str(tmp_path / "gray.png"), np.zeros((4, 4), np.uint8))
    with pytest.raises(CaptureError) as caught:
        read_normal_map(tmp_path / "gray.png")
    assert caught.value.code == "normal-map-is-gray"
    cv2.imwrite(str(tmp_path / "n.png"), np.full((4, 4, 3), 200, np.uint8))
    cv2.imwrite(str(tmp_path / "small.png"), np.full((3, 3), 255, np.uint8))
    with pytest.raises(CaptureError) as caught:
        read_normal_map(tmp_path / "n.png", tmp_path / "small.png")
    assert caught.value.code == "mask-size"
    with pytest.raises(CaptureError) as caught:
        read_normal_map(tmp_path / "n.png", tmp_path / "gray.png")
    assert caught.value.code == "empty-mask"
    (tmp_path / "n.png").write_bytes((tmp_path / "n.png").read_bytes()[:-20])
    with pytest.raises(CaptureError) as caught:
        read_normal_map(tmp_path / "n.png")
    assert caught.value.code == "damaged-image"


def test_masks_of_zeros_and_ones(tmp_path: Path) -> None:
    """As a solve takes them: there is one reader of masks."""
    inside = np.zeros((4, 4), np.uint8)
    inside[1:3, 1:3] = 1
    cv2.imwrite(str(tmp_path / "mask.png"), inside)
    cv2.imwrite(str(tmp_path / "n.png"), np.full((4, 4, 3), 200, np.uint8))
    _, mask = read_normal_map(tmp_path / "n.png", tmp_path / "mask.png")
    np.testing.assert_array_equal(mask, inside == 1)
