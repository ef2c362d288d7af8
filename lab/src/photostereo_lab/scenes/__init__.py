"""Synthetic captures with exact ground truth: shapes, textures, reflectances, shadows.

>>> from photostereo_lab import scenes
>>> capture = scenes.render_scene("vase", size=48, reflectance="ggx", lights=scenes.ring_lights(8))
>>> capture.name, len(capture)
('vase', 8)
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
