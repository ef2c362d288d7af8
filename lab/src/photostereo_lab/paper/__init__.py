"""Every table and figure of the paper by name; see :func:`.reproduce.reproduce` and :func:`.reproduce.list_runs`."""
