"""A video gives a result like photographs: frames are chosen, lights estimated, the object found."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.diagnosis.metrics import angular_error
from photostereo.pipeline.pipeline import Pipeline
from photostereo_lab.scenes import render_scene

SIZE = 160
COUNT = 120


def torch_video(path: Path) -> np.ndarray:
    """Film a vase under a torch that is walked around it one and a half times; return the true normals."""
    azimuth = np.linspace(0, 3 * np.pi, COUNT)
    elevation = np.radians(48 + 14 * np.sin(4 * azimuth / 3))
    flat = np.cos(elevation)
    lights = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=1)
    scene = render_scene("vase", size=SIZE, lights=lights, texture="uniform")
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 30, (SIZE, SIZE))
    for image in scene.images:
        encoded = np.where(image < 0.018, 4.5 * image, 1.099 * image.clip(1e-6) ** 0.45 - 0.099)
        frame = np.rint(255 * encoded.clip(0, 1)).astype(np.uint8)
        writer.write(np.repeat(frame[..., None], 3, axis=2))
    writer.release()
    assert scene.truth is not None
    return scene.truth


def test_a_video_is_a_capture(tmp_path: Path) -> None:
    truth = torch_video(tmp_path / "torch.avi")
    pipeline = Pipeline(tmp_path / "torch.avi", method="ls", report=False)
    capture = pipeline.capture
    assert capture.origin is not None
    assert capture.origin.layout == "video"
    notes = by_code(capture.origin.notes)
    assert notes["video-frames"].values["frames"] == COUNT
    assert 24 <= len(capture) <= 60
    assert capture.origin.files[0].startswith("frame-")
    seen = truth.any(axis=-1)
    overlap = (capture.mask & seen).sum() / (capture.mask | seen).sum()
    assert overlap > 0.9
    error = angular_error(pipeline.solution.normals, truth, capture.mask & seen)
    assert np.nanmean(error) < 15  # lights are estimated; known ones give 4


def test_what_is_no_video_is_explained(tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_bytes(b"no video")
    with pytest.raises(CaptureError) as error:
        _ = Pipeline(tmp_path / "x.mp4", method="ls").capture
    assert error.value.code == "unreadable-video"
