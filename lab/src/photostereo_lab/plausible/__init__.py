"""Captures as people make them, nothing damaged: many kinds of subjects, lights, balls and cameras, with ground truth.

Fuzzing varies the damage; this varies the subject. A seed determines everything::

    photostereo plausible --out results --count 60 --seed 1
"""
