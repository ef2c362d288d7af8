"""``python -m photostereo``: the command line."""

from photostereo.cli import main

if __name__ == "__main__":
    main()
