"""Plans of trials, on one machine or a cluster, kept in a store, turned into tables and figures.

The public function is :func:`.sweep.sweep`.
"""
