"""From files to results: the stages of one capture."""
