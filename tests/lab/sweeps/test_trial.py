"""Trials and their hashes."""

from __future__ import annotations

from dataclasses import replace

from photostereo.batch.settings import fingerprint
from photostereo_lab.sweeps.plan import CaptureSpec, Corruption, Trial


def a_trial(**changes):
    capture = CaptureSpec("cat", "/somewhere/catPNG", "0123456789abcdef")
    facts = {"images": 20, "corruption": Corruption("poisson", 5.0), "seed": 3}
    return replace(Trial(capture, "pdlnv", {"lam": 10.0, "mu": 0.1}, **facts), **changes)


def test_hash_is_the_same_today_and_tomorrow():
    # Written down once: results of other days and machines are found again only if this never changes.
    assert a_trial().hash == "f439839bf14e8f483076d39e"


def test_hash_does_not_depend_on_the_place_or_on_the_order_of_parameters():
    moved = replace(a_trial().capture, path="/elsewhere/catPNG")
    assert a_trial(capture=moved).hash == a_trial().hash
    assert a_trial(parameters={"mu": 0.1, "lam": 10.0}).hash == a_trial().hash


def test_hash_depends_on_everything_that_is_computed():
    others = [
        a_trial(method="dlnv"),
        a_trial(parameters={"lam": 10.0, "mu": 0.2}),
        a_trial(parameters={}),
        a_trial(images=21),
        a_trial(images=None),
        a_trial(seed=4),
        a_trial(corruption=Corruption("poisson", 6.0)),
        a_trial(corruption=Corruption("gaussian", 5.0)),
        a_trial(task="represent"),
        a_trial(capture=replace(a_trial().capture, fingerprint="f" * 16)),
        a_trial(capture=replace(a_trial().capture, reference="ls")),
        a_trial(capture=replace(a_trial().capture, name="dog")),
    ]
    assert len({trial.hash for trial in [a_trial(), *others]}) == len(others) + 1


def test_fingerprint_sees_names_and_sizes_but_not_the_place(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "001.png").write_bytes(b"abc")
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")
    (tmp_path / "two" / "001.png").write_bytes(b"abcd")
    assert fingerprint(tmp_path / "one") != fingerprint(tmp_path / "two")
    (tmp_path / "one.npz").write_bytes(b"abc")
    before = fingerprint(tmp_path / "one.npz")
    (tmp_path / "one.npz").write_bytes(b"abd")  # the same size, other content
    assert fingerprint(tmp_path / "one.npz") != before
