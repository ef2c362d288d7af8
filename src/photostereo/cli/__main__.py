"""``python -m photostereo.cli``."""

from photostereo.cli.root import main

if __name__ == "__main__":
    main()
