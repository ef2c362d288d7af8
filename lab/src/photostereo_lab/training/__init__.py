"""How the learned models are made: synthetic scenes on the fly, and nothing else.

``solids``     random solids as implicit fields, seen from the camera
``reliefs``    coins, carvings, folds, paintings: height fields that fill a frame or a flat outline
``transport``  how light reaches a pixel: past what stands in its way, from the object itself, a table, a wall, the room
``materials``  how a surface reflects (the lobes of :mod:`photostereo.scenes.brdf` and more), in torch
``layouts``    where the lights stand and how strong they are
``scenes``     all of it together: photographs as a perfect camera takes them
``sensor``     what camera and mask make of them
``loop``       the training of any network, with checkpoints
``reflectance``, ``context``, ``lights``  the three networks: what each learns from, its loss, its validation set
"""
