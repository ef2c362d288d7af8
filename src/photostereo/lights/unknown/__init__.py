"""Estimate unknown lights from the photographs themselves."""
