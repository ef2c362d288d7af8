"""What one pixel cannot know: a convolutional network looks at the whole object, in coarse cells, and corrects the normals.

``features``  what the network is shown of every pixel
``cells``     from pixels to cells of a fixed grid across the object, and back
``network``   the network
``correct``   all of it together: a field of corrections, and what it makes of a pixel's normal
"""
