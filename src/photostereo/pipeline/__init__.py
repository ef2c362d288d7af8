"""From files to results: one capture on its way."""
