"""How the network that estimates unknown lights is made: synthetic scenes on the fly, and nothing else.

``solids``     random solids as implicit fields, seen from the camera
``reliefs``    coins, carvings, folds, paintings: height fields that fill a frame or a flat outline
``horizons``   cast shadows: how high the surroundings stand in every direction
``bounces``    light that one part of an object throws on another
``layouts``    where the lights stand and how strong they are
``dressing``   materials over a whole surface
``sensor``     what camera and mask make of the scene
``scenes``     all of it together: batches of photographs with their lights
``network``    the network in torch, the twin of :mod:`photostereo.lights.unknown.network`
``validation`` the fixed validation set
``loop``       the training itself, with checkpoints
``export``     from a trained network to the archive that the package reads
"""
