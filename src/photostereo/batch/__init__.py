"""Many captures with the same settings: one folder of results each, a ledger, a page to look over them.

The public function is :func:`.run.batch`.
"""
