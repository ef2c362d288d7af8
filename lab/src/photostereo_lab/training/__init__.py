"""Train the learned models, only on synthetic scenes that are generated on the fly.

``solids``     random solids as implicit fields, seen from the camera
``reliefs``    coins, carvings, folds, paintings: height fields that fill a frame or a flat outline
``transport``  how light reaches a pixel: past occluders, from the object itself, a table, a wall, the room
``materials``  how a surface reflects (the lobes of :mod:`photostereo_lab.scenes.brdf` and more), in torch
``layouts``    positions and strengths of the lights
``scenes``     complete scenes: photographs taken by a perfect camera
``sensor``     the effects of the camera and the mask
``loop``       the training of any network, with checkpoints
``reflectance``, ``context``, ``lights``  the three networks: training data, loss and validation set of each
"""
