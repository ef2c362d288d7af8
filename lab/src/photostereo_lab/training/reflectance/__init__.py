"""The set network of :mod:`photostereo.reflectance.learned`: single pixels and pixels of scenes, and how it learns."""
