"""Experiments: plans of trials, run on one machine or a cluster, kept in a store, turned into tables and
figures.
"""
