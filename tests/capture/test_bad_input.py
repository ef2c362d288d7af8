"""Everything that can be wrong with a folder: one paragraph that names file and remedy; nothing written."""

from __future__ import annotations

import shutil

import cv2
import numpy as np
import pytest
import tifffile

from photostereo.capture import load
from photostereo.capture.loading import find_source
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code


def drop_lights(folder):
    (folder / "lights.txt").unlink()


def fewer_lights(folder):
    lines = (folder / "lights.txt").read_text().splitlines()
    (folder / "lights.txt").write_text("\n".join(lines[:-2]))


def more_lights(folder):
    (folder / "lights.txt").write_text((folder / "lights.txt").read_text() + "0 0 1\n")


def another_size(folder):
    cv2.imwrite(str(folder / "shot7.png"), np.zeros((13, 9, 3), np.uint16))


def unreadable(folder):
    (folder / "shot7.png").write_bytes(b"I am not a picture")


def truncated(folder):
    (folder / "shot7.png").write_bytes((folder / "shot7.png").read_bytes()[:-100])


def undefined(folder):
    for file in folder.glob("shot*.png"):
        values = np.ones((12, 9), np.float32)
        if file.stem == "shot7":
            values[4, 4] = np.nan
        tifffile.imwrite(file.with_suffix(".tif"), values)
        file.unlink()


def zero_light(folder):
    lines = (folder / "lights.txt").read_text().splitlines()
    lines[6] = "0 0 0"
    (folder / "lights.txt").write_text("\n".join(lines))


def flat_lights(folder):
    lights = np.loadtxt(folder / "lights.txt") * [1, 0, 1]
    np.savetxt(folder / "lights.txt", lights)


def two_photographs(folder):
    for number in range(3, 12):
        (folder / f"shot{number}.png").unlink()


def no_photographs(folder):
    for file in folder.glob("shot*.png"):
        file.unlink()


def empty_mask(folder):
    cv2.imwrite(str(folder / "mask.png"), np.zeros((12, 9), np.uint8))


def mask_of_another_size(folder):
    cv2.imwrite(str(folder / "mask.png"), np.full((9, 12), 255, np.uint8))


def two_masks(folder):
    for name in ("mask.png", "thing_mask.png"):
        cv2.imwrite(str(folder / name), np.full((12, 9), 255, np.uint8))


def names_that_are_not_there(folder):
    lines = (folder / "lights.txt").read_text().splitlines()
    (folder / "lights.txt").write_text(
        "\n".join(f"shot{n}.png {line}" for n, line in enumerate(lines))
    )


def names_twice(folder):
    lines = (folder / "lights.txt").read_text().splitlines()
    (folder / "lights.txt").write_text(
        "\n".join(f"shot{max(n, 2)}.png {line}" for n, line in enumerate(lines, 1))
    )


def names_twice_but_for_the_case(folder):
    names_twice(folder)
    text = (folder / "lights.txt").read_text()
    (folder / "lights.txt").write_text(text.replace("shot2.png", "Shot2.PNG", 1))


@pytest.mark.parametrize(
    ("spoil", "file", "code"),
    [
        (drop_lights, "thing", "lights-not-estimated"),
        (fewer_lights, "lights.txt", "lights-count"),
        (more_lights, "lights.txt", "lights-count"),
        (another_size, "shot7.png", "size-mismatch"),
        (unreadable, "shot7.png", "damaged-image"),
        (truncated, "shot7.png", "damaged-image"),
        (undefined, "shot7.tif", "photograph-not-finite"),
        (zero_light, "lights.txt", "light-zero"),
        (flat_lights, "thing", "lights-coplanar"),
        (two_photographs, "thing", "too-few-photographs"),
        (no_photographs, "thing", "too-few-photographs"),
        (empty_mask, "mask.png", "empty-mask"),
        (mask_of_another_size, "mask.png", "mask-size"),
        (two_masks, "mask.png", "several-masks"),
        (names_that_are_not_there, "shot0.png", "light-without-photograph"),
        (names_twice, "shot2.png", "light-repeated"),
        (names_twice_but_for_the_case, "Shot2.PNG", "light-repeated"),
    ],
)
def test_each_fault_is_explained(folder, spoil, file, code):
    spoil(folder)
    before = sorted(path.name for path in folder.parent.rglob("*"))
    with pytest.raises(CaptureError) as caught:
        load(folder, strict=True)
    assert caught.value.code == code
    message = str(caught.value)
    assert file in message
    assert "\n" not in message
    assert message.rstrip(")").endswith((".", "x y z"))
    assert sorted(path.name for path in folder.parent.rglob("*")) == before


def test_missing_folder(tmp_path):
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "no-such-capture" and e.file.name == "nowhere"
    ):
        load(tmp_path / "nowhere")


def test_folder_of_captures_and_folder_of_nothing(folder, tmp_path):
    with pytest.raises(CaptureError, check=lambda e: e.code == "several-captures"):
        load(tmp_path)
    (tmp_path / "empty-mask").mkdir()
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "no-photographs" and e.file.name == "empty-mask"
    ):
        load(tmp_path / "empty-mask")


def test_what_is_wrong_with_a_folder_inside_does_not_matter(tmp_path):
    inside = tmp_path / "two" / "inside"
    inside.mkdir(parents=True)
    for name in ("inside/mask.png", "inside/a.mask.png", "1.png", "2.png"):
        cv2.imwrite(str(tmp_path / "two" / name), np.full((8, 8), 99, np.uint8))
    with pytest.raises(CaptureError, check=lambda e: e.code == "too-few-photographs"):
        load(tmp_path / "two")


def test_what_is_in_a_folder_without_photographs_is_said(folder, tmp_path):
    places = {name: tmp_path / name for name in ("nothing", "films", "parent")}
    for place in places.values():
        place.mkdir()
    assert refusal(places["nothing"]).values["content"] == "it is empty"
    for name in ("a.MOV", "b.mp4", "notes.txt"):
        (places["films"] / name).write_bytes(b"")
    assert refusal(places["films"]).values["content"] == "only a.MOV, b.mp4, notes.txt"
    for name in ("one", "two"):  # without a light file
        shutil.copytree(folder, places["parent"] / name, ignore=shutil.ignore_patterns("lights*"))
    assert refusal(places["parent"]).values["captures"] == ["one", "two"]
    assert all(len(str(refusal(place))) < len(str(place)) + 200 for place in places.values())
    (places["parent"] / "one").rename(places["parent"] / "Objects")  # as in Harvard's layout
    shutil.rmtree(places["parent"] / "two")
    assert len(find_source(places["parent"], ReadOptions()).files) == 11


def refusal(place):
    with pytest.raises(CaptureError) as caught:
        load(place)
    return caught.value


def test_a_file_that_is_no_capture(folder):
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "not-a-capture" and e.file.name == "shot1.png"
    ):
        load(folder / "shot1.png")


def test_soft_mask_is_cut_at_half_and_noted(folder):
    mask = np.zeros((12, 9), np.uint8)
    mask[4:8, 2:7] = 255
    mask[3, 2:7] = 100
    mask[8, 2:7] = 200
    cv2.imwrite(str(folder / "mask.png"), mask)
    capture = load(folder)
    np.testing.assert_array_equal(capture.mask, mask > 127)
    assert by_code(capture.origin.notes)["soft-mask"].values["count"] == 10


def test_mask_array_of_another_size(folder):
    with pytest.raises(CaptureError, check=lambda e: e.code == "mask-size"):
        load(folder, mask=np.ones((3, 4), bool))


def test_two_light_files_are_noted(folder, shots):
    shots.write_lights(folder, "lights.csv")
    assert by_code(load(folder).origin.notes)["several-light-files"].values == {
        "used": "lights.csv",
        "others": "lights.txt",
    }


def test_lights_from_behind_are_noted(folder, shots):
    assert "lights-behind" not in by_code(load(folder).origin.notes)
    np.savetxt(folder / "lights.txt", -shots.lights)
    assert by_code(load(folder).origin.notes)["lights-behind"].values["count"] == 11
