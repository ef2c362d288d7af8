"""Context beyond single pixels: a convolutional network sees the whole object, in coarse cells, and corrects the normals.

``features``  inputs of the network for every pixel
``cells``     from pixels to cells of a fixed grid across the object, and back
``network``   the network
``correct``   all steps together: a field of corrections, and its effect on the normals
"""
