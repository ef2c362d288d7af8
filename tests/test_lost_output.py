"""Standard output that is closed, full or not there costs words, never results."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from photostereo.cli.streams import LastingStream, lasting_output, report_lost_output

#: Prints, then writes a file, then prints again.
WORK = """
import sys
from pathlib import Path
from photostereo.cli.streams import lasting_output, report_lost_output
with lasting_output() as output:
    print("before" * 2000)
    output.flush()
    Path(sys.argv[1]).write_text("results")
    print("after")
    output.flush()
    sys.exit(report_lost_output(output, 0))
"""
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has none")


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def work(target: Path, redirection: str) -> subprocess.CompletedProcess[str]:
    script = f'exec "$0" -c "$1" "$2" {redirection}'
    command = ["sh", "-c", script, sys.executable, WORK, str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "2>&-"])
def test_without_a_terminal_the_work_goes_on(tmp_path: Path, redirection: str) -> None:
    done = work(tmp_path / "file", redirection)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "file").read_text() == "results"


@needs_full
def test_a_full_disk_behind_standard_output(tmp_path: Path) -> None:
    done = work(tmp_path / "file", "> /dev/full")
    assert (tmp_path / "file").read_text() == "results"
    assert done.returncode == 2
    assert "The work itself is done." in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_the_reader_of_a_pipe_may_leave(tmp_path: Path) -> None:
    done = work(tmp_path / "file", "| true")
    assert (done.returncode, done.stderr) == (0, "")
    # A shell reports the end of the reader, and may do so before the work ends.
    for _ in range(100):
        if (tmp_path / "file").exists():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert (tmp_path / "file").read_text() == "results"


@needs_full
def test_json_for_a_full_disk() -> None:
    command = [sys.executable, "-m", "photostereo", "methods", "ls", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)


def test_only_the_first_failure_is_kept_and_later_text_is_dropped() -> None:
    stream = LastingStream(FullDisk())
    assert stream.write("one") == 3
    first = stream.failure
    stream.write("two")
    stream.flush()
    assert first is not None and stream.failure is first


def test_the_streams_are_put_back() -> None:
    before = (sys.stdout, sys.stderr)
    with lasting_output() as output:
        assert sys.stdout is output
        sys.stdout.write("seen")
    assert (sys.stdout, sys.stderr) == before


def test_an_exit_code_of_the_work_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    stream = LastingStream(FullDisk())
    assert report_lost_output(stream, 1) == 1
    stream.write("lost")
    assert [report_lost_output(stream, code) for code in (0, 1)] == [2, 1]
    stream.failure = BrokenPipeError()
    assert report_lost_output(stream, 0) == 0
    assert capsys.readouterr().err.count("No space left") == 2
