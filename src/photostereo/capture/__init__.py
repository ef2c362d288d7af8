"""Photographs with their lights: the :class:`Capture`, readers and writers."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
