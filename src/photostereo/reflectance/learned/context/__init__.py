"""Context beyond single pixels: a convolutional network sees the whole object, in coarse cells, and
corrects the normals.
"""
