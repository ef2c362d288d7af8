"""Benchmarks: accuracy, and speed and memory relative to a reference in the same run."""
