"""``photostereo`` and ``python -m photostereo``: the command line."""

from photostereo.runtime.signals import orderly_signals


def main() -> None:
    """Take care of Ctrl-C first; only then load what the command line needs."""
    with orderly_signals():
        from photostereo.cli import main as run

        run()


if __name__ == "__main__":
    main()
