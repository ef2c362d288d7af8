"""Everything that can be wrong with a folder: one paragraph that names file and remedy; nothing written."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import tifffile

from photostereo.capture import load
from photostereo.core.errors import CaptureError


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
    (folder / "lights.txt").write_text("\n".join(f"shot{n}.png {line}" for n, line in enumerate(lines)))


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
    ("spoil", "file", "words"),
    [
        (drop_lights, "thing", "no light directions.*lights.csv"),
        (fewer_lights, "lights.txt", "9 lights, fewer than the 11 photographs"),
        (more_lights, "lights.txt", "12 lights, more than the 11 photographs"),
        (another_size, "shot7.png", "measures 13 × 9.*12 × 9"),
        (unreadable, "shot7.png", "cannot be decoded"),
        (truncated, "shot7.png", "truncated"),
        (undefined, "shot7.tif", "NaN or infinite"),
        (zero_light, "lights.txt", "light 7 is the zero vector"),
        (flat_lights, "thing", "lie in a plane"),
        (two_photographs, "thing", "2 photograph.*at least three"),
        (no_photographs, "thing", "0 photograph"),
        (empty_mask, "mask.png", "empty"),
        (mask_of_another_size, "mask.png", "measures 9 × 12.*12 × 9"),
        (two_masks, "mask.png", "several masks"),
        (names_that_are_not_there, "shot0.png", "not among the photographs"),
        (names_twice, "shot2.png", "twice"),
        (names_twice_but_for_the_case, "Shot2.PNG", "twice"),
    ],
)
def test_each_fault_is_explained(folder, spoil, file, words):
    spoil(folder)
    before = sorted(path.name for path in folder.parent.rglob("*"))
    with pytest.raises(CaptureError, match=words) as caught:
        load(folder)
    message = str(caught.value)
    assert file in message
    assert "\n" not in message
    assert message.rstrip(")").endswith((".", "x y z"))
    assert sorted(path.name for path in folder.parent.rglob("*")) == before


def test_missing_folder(tmp_path):
    with pytest.raises(CaptureError, match="nowhere does not exist"):
        load(tmp_path / "nowhere")


def test_folder_of_captures_and_folder_of_nothing(folder, tmp_path):
    with pytest.raises(CaptureError, match="holds 1 of them: thing"):
        load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaptureError, match=r"no photographs and no light directions.*DiLiGenT.*Harvard.*RTI"):
        load(tmp_path / "empty")


def test_a_file_that_is_no_capture(folder):
    with pytest.raises(CaptureError, match=r"shot1\.png is not a capture"):
        load(folder / "shot1.png")


def test_soft_mask_is_cut_at_half_and_noted(folder):
    mask = np.zeros((12, 9), np.uint8)
    mask[4:8, 2:7] = 255
    mask[3, 2:7] = 100
    mask[8, 2:7] = 200
    cv2.imwrite(str(folder / "mask.png"), mask)
    capture = load(folder)
    np.testing.assert_array_equal(capture.mask, mask > 127)
    assert any("10 pixels between black and white" in note for note in capture.origin.notes)


def test_mask_array_of_another_size(folder):
    with pytest.raises(CaptureError, match="measures 3 × 4"):
        load(folder, mask=np.ones((3, 4), bool))


def test_two_light_files_are_noted(folder, shots):
    shots.write_lights(folder, "lights.csv")
    assert any("lights.csv is used, lights.txt not" in note for note in load(folder).origin.notes)


def test_lights_from_behind_are_noted(folder, shots):
    assert not any("behind" in note for note in load(folder).origin.notes)
    np.savetxt(folder / "lights.txt", -shots.lights)
    assert any("11 of 11 lights in lights.txt come from behind" in note for note in load(folder).origin.notes)
