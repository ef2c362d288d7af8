"""A capture too large for one worker: bands over the cluster, with the result of one worker alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from distributed import Client, LocalCluster

import photostereo as ps
from photostereo.batch import worker
from photostereo.batch.worker import share_bands
from photostereo.capture import write_diligent
from photostereo.pipeline.settings import Settings
from photostereo.solver.tiles import OF_A_RESULT, OF_THE_PROGRAM, bytes_of_row
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import render_scene

SETTINGS = Settings().changed(
    method="dlnv", parameters={"max_iter": 2}, surface=False, report=False
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A capture on disk, and memory that makes four bands of it."""
    scene = add_poisson(render_scene("relief", size=(256, 48)).take(8, rng=0), 15, rng=0)
    path = tmp_path_factory.mktemp("wide") / "reliefPNG"
    write_diligent(scene, path)
    row = bytes_of_row(48, 8, 1, prior=260)
    return path, OF_THE_PROGRAM + 256 * 48 * OF_A_RESULT + (64 + 48) * row


def test_outside_of_a_cluster_bands_are_solved_here(written) -> None:
    path, memory = written
    alone = ps.solve(ps.Pipeline(path, SETTINGS).capture, "dlnv", memory=memory, max_iter=2)
    deal = partial(share_bands, path, SETTINGS)
    dealt = ps.solve(
        ps.Pipeline(path, SETTINGS).capture, "dlnv", memory=memory, max_iter=2, deal=deal
    )
    assert np.array_equal(dealt.normals, alone.normals)
    assert np.array_equal(dealt.albedo, alone.albedo)
    assert (dealt.digest, dealt.iterations) == (alone.digest, alone.iterations)


@pytest.mark.slow
def test_two_workers_share_a_capture(written) -> None:
    path, memory = written
    alone = ps.solve(ps.Pipeline(path, SETTINGS).capture, "dlnv", memory=memory, max_iter=2)
    local = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    )
    with local, Client(local) as client:
        future = client.submit(
            ps.solve,
            ps.Pipeline(path, SETTINGS).capture,
            "dlnv",
            memory=memory,
            max_iter=2,
            deal=partial(share_bands, path, SETTINGS),
        )
        shared = future.result(timeout=120)
        took_part = client.run(lambda: worker._opened is not None)
    assert list(took_part.values()) == [True, True]
    assert np.array_equal(shared.normals, alone.normals)
    assert np.array_equal(shared.albedo, alone.albedo)
    assert shared.digest == alone.digest
