"""Many captures with the same settings: a folder of results for each, a ledger, and an overview page.

The public function is :func:`.run.batch`.
"""
