"""What the result does not need may fail."""

from __future__ import annotations

import logging

import cv2
import numpy as np
import pytest

from photostereo.core.attempt import attempt
from photostereo.core.control import Cancelled
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding


def raising(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        np.linalg.LinAlgError("Singular matrix"),
        cv2.error("SHRT_MAX"),
        IndexError(),
        ZeroDivisionError(),
    ],
)
def test_a_failure_is_a_finding_and_is_logged(
    error: Exception, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    failures: list[Finding] = []
    with caplog.at_level(logging.ERROR, "photostereo"):
        assert attempt("the check", raising, error, failures=failures, otherwise=7) == 7
    (finding,) = failures
    assert finding.code == "check-failed" and finding.values["check"] == "the check"
    assert finding.values["place"].startswith("test_attempt.py:")
    assert type(error).__name__ in finding.values["error"] and "\n" not in str(finding)
    assert caplog.records[0].exc_info and capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "error",
    [Cancelled(), KeyboardInterrupt(), MemoryError(), CaptureError(code="no-object", name="x")],
)
def test_what_the_user_must_know_is_raised(error: BaseException) -> None:
    failures: list[Finding] = []
    with pytest.raises(type(error)):
        attempt("the check", raising, error, failures=failures, otherwise=None)
    assert not failures
