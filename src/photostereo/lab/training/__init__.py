"""How the learned models are made: synthetic scenes on the fly, and nothing else.

``solids``     random solids as implicit fields, seen from the camera
``reliefs``    coins, carvings, folds, paintings: height fields that fill a frame or a flat outline
``heights``    the height fields behind them
``horizons``   cast shadows: how high the surroundings stand in every direction
``bounces``    light that one part of an object throws on another
``surroundings``  light that a table, a wall and the room throw on it
``materials``  how a surface reflects (the lobes of :mod:`photostereo.scenes.brdf` and more), in torch
``dressing``   materials over a whole surface
``layouts``    where the lights stand and how strong they are
``scenes``     all of it together: photographs as a perfect camera takes them
``sensor``     what camera and mask make of them
``loop``       the training of any network, with checkpoints
``reflectance``, ``context``, ``lights``  the three networks: what each learns from, its loss, its validation set
"""
