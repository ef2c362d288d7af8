"""Sources of lights: code asks for the kind, people read the words."""

from __future__ import annotations

import numpy as np

from photostereo.lights.lights import Lights
from photostereo.lights.source import LightSource, SourceKind, joined


def test_words_of_a_caller_and_kinds_of_ours() -> None:
    plain = Lights(np.eye(3), source=["my dome", "estimated", "my dome"])
    assert plain.source == ("my dome", "estimated", "my dome")
    assert plain.are_estimated
    assert not plain.take([0, 2]).are_estimated
    assert not Lights(np.eye(3), source="estimated.csv").are_estimated


def test_a_file_called_like_a_ball_is_a_file() -> None:
    """The folder of a ball was added to every source with the words "ball at"."""
    file = LightSource(SourceKind.FILE, "ball at home.csv")
    ball = LightSource(SourceKind.SHINY_BALL, "shiny ball at 5,6")
    assert str(file.seen_in("chrome")) == "ball at home.csv"
    assert str(ball.seen_in("chrome")) == "shiny ball at 5,6 in chrome"
    both = joined((ball, LightSource(SourceKind.MATTE_BALL)))
    assert (str(both), both.kind) == ("shiny ball at 5,6 and matte ball", SourceKind.SHINY_BALL)


def test_changed_and_moved_lights_keep_their_sources() -> None:
    lights = Lights(np.eye(3), source=LightSource(SourceKind.FILE, "lights.csv"))
    moved = lights.moved({1: [0, 0, 1]}).changed(strengths=[1, 2, 3])
    assert [source.kind for source in moved.sources] == [
        SourceKind.FILE,
        SourceKind.HAND,
        SourceKind.FILE,
    ]
    assert moved.strengths_source == ""
