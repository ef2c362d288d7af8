"""Reflectance models: how the intensities of one pixel constrain its normal.

Arrays only; one folder per model.
"""
