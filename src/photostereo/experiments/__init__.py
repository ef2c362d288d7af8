"""Experiments: plans of trials, on one machine or a cluster, kept in a store, turned into tables and figures.

The public functions are :func:`.reproduce.reproduce`, :func:`.reproduce.list_runs` and :func:`.sweep.sweep`.
"""
