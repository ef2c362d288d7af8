"""Light directions and strengths: the :class:`Lights` object, light files, balls, near lights."""
