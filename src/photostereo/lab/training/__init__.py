"""How the learned reflectance model is made: synthetic pixels on the fly, and nothing else.

``materials``  how a surface reflects (the lobes of :mod:`photostereo.scenes.brdf` and more), in torch
``layouts``    where the lights stand, near or far
``pixels``     single pixels with what may surround them
``heights``    random objects as height fields
``rendered``   pixels of those objects with cast shadows and light from neighbors
``sensor``     noise, clipped highlights, damaged photographs
``validation`` the fixed validation set
``loop``       the training itself, with checkpoints
"""
