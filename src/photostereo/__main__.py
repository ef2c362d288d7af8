"""``photostereo`` and ``python -m photostereo``: the command line."""

import gc
import sys

from photostereo.runtime.signals import ended_by, leave, orderly_signals

#: New objects between two searches for garbage. With Python's 700 a fifth of the time of importing is spent on them; with
#: 10,000 a small solve spends 0.07 seconds.
OBJECTS = 50_000
#: Seconds that a thread keeps the interpreter while another waits. Beside a thread that imports modules, short array
#: operations would wait for Python's 0.005 after each.
TURN = 0.0005


def main() -> None:
    """Take care of Ctrl-C first; only then load what the command line needs."""
    gc.set_threshold(OBJECTS)
    sys.setswitchinterval(TURN)
    with orderly_signals():
        from photostereo.cli import main as run

        try:
            run()
        except SystemExit as end:
            if ended_by() is not None:
                leave(end.code)
            raise


def program() -> None:
    """Run the command line as a program: nothing follows, so the process ends at once."""
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        leave(end.code)


if __name__ == "__main__":
    program()
