"""``photostereo`` and ``python -m photostereo``: the command line."""

from photostereo.runtime.signals import ended_by, leave, orderly_signals


def main() -> None:
    """Take care of Ctrl-C first; only then load what the command line needs."""
    with orderly_signals():
        from photostereo.cli import main as run

        try:
            run()
        except SystemExit as end:
            if ended_by() is not None:
                leave(end.code)
            raise


if __name__ == "__main__":
    main()
