"""Frames of a video: the light decides how many, and blur, hands and rest are left out."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.photographs.video.choose import (
    FEWEST,
    MOST,
    Look,
    choose_frames,
    is_sharp,
    is_strange,
    path_length,
)
from photostereo.photographs.video.decode import (
    averaged,
    chosen_frames,
    is_video,
    linear_from_bt709,
    look_at,
)
from photostereo_lab.scenes import render_scene

SIZE = 96
COUNT = 150
REST = 20
HAND = range(60, 70)
BLUR = range(100, 104)


def torch_path(count: int) -> np.ndarray:
    """Directions of a torch that is walked around the object once, up and down."""
    azimuth = np.linspace(0, 2 * np.pi, count)
    elevation = np.radians(45 + 15 * np.sin(3 * azimuth))
    flat = np.cos(elevation)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=1)


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    """Linear frames: the light rests, then moves; a hand enters, some frames are blurred, the exposure drifts."""
    lights = torch_path(COUNT - REST)
    moving = render_scene("figure", size=SIZE, lights=lights, reflectance="ggx").images
    pictures = np.concatenate([np.repeat(moving[:1], REST, axis=0), moving])
    rng = np.random.default_rng(0)
    for number in HAND:
        pictures[number, 60:, :30] = 0.4 + 0.1 * rng.random((36, 30))
    for number in BLUR:
        pictures[number] = cv2.GaussianBlur(pictures[number], (0, 0), 2.5)
    gain = 1 + 0.2 * np.sin(np.linspace(0, 5, COUNT))
    noisy = pictures * gain[:, None, None] + 0.002 * rng.standard_normal(pictures.shape)
    return noisy.clip(0, 1).astype(np.float32)


def encoded(linear: np.ndarray) -> np.ndarray:
    low = 4.5 * linear
    high = 1.099 * np.maximum(linear, 1e-6) ** 0.45 - 0.099
    return np.rint(255 * np.where(linear < 0.018, low, high)).astype(np.uint8)


@pytest.fixture(scope="module")
def video(frames: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("video") / "torch.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 30, (SIZE, SIZE))
    for frame in frames:
        writer.write(np.repeat(encoded(frame)[..., None], 3, axis=2))
    writer.release()
    return path


def test_the_curve_is_that_of_the_standard() -> None:
    linear = np.linspace(0, 1, 200)
    np.testing.assert_allclose(linear_from_bt709(encoded(linear)), linear, atol=0.005)


def test_frames_spread_over_the_path_of_the_light(video: Path) -> None:
    assert is_video(video)
    look, stride = look_at(video)
    assert stride == 1
    assert len(look.pictures) == COUNT
    chosen = choose_frames(look)
    assert FEWEST <= len(chosen) <= MOST
    assert not set(chosen) & set(HAND)
    assert not set(chosen) & set(BLUR)
    assert (chosen < REST).sum() <= 2
    moving = chosen[chosen >= REST] - REST
    lights = torch_path(COUNT - REST)
    between = np.degrees(np.arccos((lights @ lights[moving].T).clip(-1, 1))).min(axis=1)
    assert between.max() < 25  # the hand hides some 25° of the path


def test_a_resting_light_has_no_path(frames: np.ndarray) -> None:
    small = frames[:, ::2, ::2]
    path = path_length(small)
    assert path[REST - 1] < 0.03 * path[-1]
    with pytest.raises(CaptureError) as error:
        choose_frames(Look(small[:REST], np.ones(REST)))
    assert error.value.code == "light-does-not-move"


def test_exposure_is_no_movement(frames: np.ndarray) -> None:
    small = frames[:40, ::2, ::2]
    brighter = small * np.linspace(1, 2, 40)[:, None, None]
    np.testing.assert_allclose(path_length(brighter), path_length(small), rtol=1e-4, atol=1e-5)


def test_hands_and_blur_are_seen(frames: np.ndarray) -> None:
    strange = is_strange(frames[:, ::2, ::2])
    assert strange[list(HAND)].all()
    assert strange.sum() <= len(HAND) + len(BLUR) + 1
    sharpness = np.ones(50)
    sharpness[20:22] = 0.6
    assert np.flatnonzero(~is_sharp(sharpness)).tolist() == [20, 21]


def test_neighbors_under_the_same_light_are_averaged() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.2, 0.8, (40, 50, 3)).astype(np.float32)
    window = {
        k: truth + 0.005 * rng.standard_normal(truth.shape).astype(np.float32) for k in range(5)
    }
    window[4] = 1.2 * truth  # another light
    noise = np.abs(averaged(2, window) - truth).std()
    assert noise < 0.6 * np.abs(window[2] - truth).std()


def test_frames_are_decoded_by_number(video: Path, frames: np.ndarray) -> None:
    decoded = dict(chosen_frames(video, np.array([5, 90, COUNT - 1])))
    assert list(decoded) == [5, 90, COUNT - 1]
    for number, picture in decoded.items():
        assert np.abs(picture.mean(axis=-1) - frames[number]).mean() < 0.01


def test_what_is_no_video(tmp_path: Path) -> None:
    file = tmp_path / "x.mp4"
    file.write_bytes(b"no video")
    with pytest.raises(CaptureError) as error:
        look_at(file)
    assert error.value.code == "unreadable-video"
