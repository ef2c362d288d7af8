"""Context beyond single pixels.

A convolutional network sees the whole object, in coarse cells, and corrects the normals.
"""
