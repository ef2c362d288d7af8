"""Light files as people write them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.lights.ball.geometry import Circle
from photostereo.lights.files.numbers import base_name, decimal
from photostereo.lights.files.reading import read_intensities, read_lights
from photostereo.lights.files.table import ball_line, balls_in

LIGHTS = np.array(
    [[0.25, -0.5, 0.75], [0.0, 1.0, 2.0], [-0.125, 0.5, 1.0], [1.0, 0.0, 0.5], [0.5, 0.5, 0.5]]
)


def write(tmp_path, text, name="lights.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(rows, between=" ", decimal="."):
    return (
        "\n".join(
            between.join(str(float(value)).replace(".", decimal) for value in row) for row in rows
        )
        + "\n"
    )


@pytest.mark.parametrize("between", [" ", "  ", "\t", ",", ", ", " , ", ";", "; "])
@pytest.mark.parametrize("transposed", [False, True])
def test_separators_and_orientations(tmp_path, between, transposed):
    path = write(tmp_path, lines(LIGHTS.T if transposed else LIGHTS, between))
    np.testing.assert_array_equal(read_lights(path).vectors, LIGHTS)


@pytest.mark.parametrize("between", [" ", "\t", ";", " ; "])
@pytest.mark.parametrize("transposed", [False, True])
def test_decimal_commas(tmp_path, between, transposed):
    path = write(tmp_path, lines(LIGHTS.T if transposed else LIGHTS, between, decimal=","))
    np.testing.assert_array_equal(read_lights(path).vectors, LIGHTS)


def test_whole_numbers_with_commas_are_not_decimals(tmp_path):
    path = write(tmp_path, "1,0,1\n0,1,1\n-1,0,1\n0,0,1\n")
    np.testing.assert_array_equal(
        read_lights(path).vectors, [[1, 0, 1], [0, 1, 1], [-1, 0, 1], [0, 0, 1]]
    )


def test_three_by_three_is_one_light_per_line(tmp_path):
    path = write(tmp_path, lines(LIGHTS[:3]))
    np.testing.assert_array_equal(read_lights(path).vectors, LIGHTS[:3])


@pytest.mark.parametrize("columns", [4, 6])
def test_three_lines_of_four_or_six_depend_on_the_photographs(tmp_path, columns):
    rows = np.arange(1.0, 1 + 3 * columns).reshape(3, columns)
    path = write(tmp_path, lines(rows))
    many = read_lights(path, count=columns)
    np.testing.assert_array_equal(many.vectors, rows.T)
    assert many.intensities is None
    few = read_lights(path, count=3)
    np.testing.assert_array_equal(few.vectors, rows[:, :3])
    np.testing.assert_array_equal(few.intensities, rows[:, 3] if columns == 4 else rows[:, 3:])


def test_strengths_beside_directions(tmp_path):
    one = read_lights(write(tmp_path, lines(np.column_stack([LIGHTS, [1, 2, 3, 4, 5]]))))
    np.testing.assert_array_equal(one.intensities, [1, 2, 3, 4, 5])
    three = read_lights(write(tmp_path, lines(np.column_stack([LIGHTS, LIGHTS + 3]))))
    np.testing.assert_array_equal(three.intensities, LIGHTS + 3)


@pytest.mark.parametrize(
    "text",
    [
        "file,x,y,z,intensity\nb 1.png,0.6,0,0.8,2\nC:\\shots\\a.png,0,0,1,3\n",
        "# made by hand\nFilename;X;Y;Z;Strength\nb 1.png;0,6;0;0,8;2\na.png;0;0;1;3\n",
        '"file","intensity","z","y","x"\n"b 1.png",2,0.8,0,0.6\n"a.png",3,1,0,0\n',
        "\ufefffile\tx\ty\tz\ti\r\nb 1.png\t0.6\t0\t0.8\t2\r\n\r\na.png\t0\t0\t1\t3\r\n",
        "b 1.png, 0.6, 0, 0.8, 2\na.png, 0, 0, 1, 3\n",
        "b 1.png\t0,6\t0\t0,8\t2\na.png\t0\t0\t1\t3\n",
    ],
)
def test_tables_with_names(tmp_path, text):
    table = read_lights(write(tmp_path, text, "lights.csv"))
    assert table.files == ("b 1.png", "a.png")
    np.testing.assert_array_equal(table.vectors, [[0.6, 0, 0.8], [0, 0, 1]])
    np.testing.assert_array_equal(table.intensities, [2, 3])


def test_header_without_names_and_with_colors(tmp_path):
    table = read_lights(write(tmp_path, "x,y,z,b,g,r\n0,0,1,3,2,1\n1,0,1,6,5,4\n", "lights.csv"))
    assert table.files is None
    np.testing.assert_array_equal(table.intensities, [[1, 2, 3], [4, 5, 6]])


def test_latin_names(tmp_path):
    table = read_lights(
        write(tmp_path, "file,x,y,z\nGröße.png,0,0,1\n".encode("latin-1"), "lights.csv")
    )
    assert table.files == ("Größe.png",)


@pytest.mark.parametrize(
    "content",
    [
        LIGHTS.tolist(),
        LIGHTS.T.tolist(),
        {"lights": LIGHTS.tolist()},
        {"lights": [{"direction": row} for row in LIGHTS.tolist()]},
        [{"direction": row} for row in LIGHTS.tolist()],
    ],
)
def test_json_shapes(tmp_path, content):
    table = read_lights(write(tmp_path, json.dumps(content), "lights.json"))
    np.testing.assert_array_equal(table.vectors, LIGHTS)
    assert table.intensities is None and table.files is None


def test_json_with_everything(tmp_path):
    entries = [
        {"file": f"s/{n}.png", "direction": row, "intensity": [n + 1.0] * 3}
        for n, row in enumerate(LIGHTS.tolist())
    ]
    table = read_lights(write(tmp_path, json.dumps({"lights": entries}), "lights.json"))
    assert table.files == tuple(f"{n}.png" for n in range(5))
    np.testing.assert_array_equal(table.intensities, np.arange(1.0, 6)[:, None].repeat(3, axis=1))
    plain = read_lights(
        write(
            tmp_path,
            json.dumps({"lights": LIGHTS.tolist(), "intensities": [1, 2, 3, 4, 5]}),
            "l.json",
        )
    )
    np.testing.assert_array_equal(plain.intensities, [1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        ("", "lights.txt", "light-file-empty"),
        ("# nothing\n\n", "lights.txt", "light-file-empty"),
        ("0 0 1\n0 0 0\n1 0 1\n", "lights.txt", "light-zero"),
        ("file,x,y,z\na.png,0,0,1\nb.png,0,0,0\n", "lights.csv", "light-zero"),
        ("0 0 1\n0 nan 1\n1 0 1\n", "lights.txt", "light-not-finite"),
        ("0 0 1\n0 inf 1\n1 0 1\n", "lights.txt", "light-not-finite"),
        ("0 0 1\n0 1\n1 0 1\n", "lights.txt", "light-file-line"),
        ("0 0 1\n0 one 1\n", "lights.txt", "light-file-line"),
        ("0 0\n0 1\n1 1\n1 2\n", "lights.txt", "light-file-shape"),
        ("0 0 1 -1\n0 1 1 1\n", "lights.txt", "light-strength"),
        ("file,azimuth,height\na.png,1,2\n", "lights.csv", "light-file-columns"),
        ("file,x,y,z\na.png,0,0\n", "lights.csv", "light-file-line"),
        ("file,x,y,z\n", "lights.csv", "light-file-empty"),
        ("{", "lights.json", None),
        ('{"lamps": []}', "lights.json", "light-file-shape"),
        ('{"lights": []}', "lights.json", "light-file-empty"),
        ('{"lights": [[0, 0]]}', "lights.json", "light-file-shape"),
        ('{"lights": [[0,0,1],[0,1,1]], "intensities": [1]}', "lights.json", "light-file-shape"),
        ('{"lights": [{"dir": [0,0,1]}]}', "lights.json", "light-file-shape"),
    ],
)
def test_bad_light_files(tmp_path, text, name, code):
    with pytest.raises(CaptureError) as caught:
        read_lights(write(tmp_path, text, name))
    if code is not None:
        assert caught.value.code == code and caught.value.file.name == name
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_word_in_place_of_a_number_is_quoted_as_it_is_in_the_file(tmp_path):
    text = "# from the dome\nfile,x,y,z\na.png,0,0,1\nb.png,0.1,O.2,1\n"
    with pytest.raises(CaptureError, match=r"has 'O\.2' in row 2 of its numbers"):
        read_lights(write(tmp_path, text, "lights.csv"))


@pytest.mark.parametrize("shape", [(5,), (5, 1), (1, 5), (5, 3), (3, 5)])
def test_intensity_files(tmp_path, shape):
    values = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    path = write(tmp_path, lines(np.atleast_2d(values) if len(shape) > 1 else values[:, None]))
    expected = values.T if shape in ((1, 5), (3, 5)) else values
    np.testing.assert_array_equal(read_intensities(path, 5), np.squeeze(expected))


def test_one_strength_with_a_decimal_comma(tmp_path):
    np.testing.assert_array_equal(
        read_intensities(write(tmp_path, "1,5\n2\n0,25\n"), 3), [1.5, 2, 0.25]
    )


def test_bad_intensity_files(tmp_path):
    for text, code in (
        ("1\n2\n", "lights-count"),
        ("1\n0\n2\n", "light-strength"),
        ("1 2\n3 4\n5 6\n", "light-file-shape"),
    ):
        with pytest.raises(CaptureError) as caught:
            read_intensities(write(tmp_path, text), 3)
        assert caught.value.code == code


def test_a_note_about_lengths(tmp_path):
    assert read_lights(write(tmp_path, "0 0 1\n0 0.6 0.8\n")).length_note() == ()
    [note] = read_lights(write(tmp_path, "0 0 1\n0 0 2\n")).length_note()
    assert (note.code, note.values["least"], note.values["most"]) == ("light-lengths-unused", 1, 2)


def test_names_numbers_and_balls():
    assert (
        base_name(r"C:\RTI\my coin\coin 01.jpg") == "coin 01.jpg"
        and base_name("shots/a.png") == "a.png"
    )
    assert (decimal("0,25"), decimal("-1.5e-3")) == (0.25, -0.0015)
    line = ball_line(Circle(30.5, 20, 9.25))
    assert line == "# ball in the frame (column row radius): 30.50 20.00 9.25"
    assert balls_in(f"{line}\nx y z\n{line.replace('20.00', 'there')}") == ((30.5, 20.0, 9.25),)
