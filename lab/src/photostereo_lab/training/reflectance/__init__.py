"""The set network of :mod:`photostereo.reflectance.learned`: single pixels, pixels of scenes, and its training."""
