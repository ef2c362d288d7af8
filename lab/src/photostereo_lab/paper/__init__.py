"""The tables and figures of the paper, by name; see :func:`.reproduce.reproduce`."""
