"""Photographs as a matrix of low rank plus sparse errors."""
