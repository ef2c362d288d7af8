"""A distilled network: a small one for one capture that replaces the set network where it can.

Why
---
The set network (:mod:`photostereo.reflectance.learned.constants`) covers every material and every
arrangement of lights, and is the slowest part of the default method. One capture has few materials
and one arrangement, so on its pixels the output of the set network is a simple function of the
intensities. Two layers can learn it, at a twentieth of the work for each pixel. This pays off for
captures of more than :data:`.training.LEAST_PIXELS` pixels that are solved in bands: a sample of
the object is answered by the set network, the small network is trained on these answers, and the
bands use it. Training takes a few seconds, on the processor only.

What it computes
----------------
:func:`.network.inputs` maps a pixel to ``F`` numbers: the intensities v, divided by their root mean
square and compressed as v / (v + h) for two values of h, the same for red and blue if there are
colors, and the matte fit with its variance. After standardization, two hidden layers of
:data:`.training.WIDTH` units map them to four numbers, the normal and the logarithm of its expected
error (radians). Normals and errors are those of the set network, so the small network needs no
ground truth.

When it is trusted
------------------
Two small networks are trained on the same answers from different initial weights, and averaged. A
pixel is left to the set network in two cases:

* *The predicted deviation is large.* A linear regression on the last hidden layer predicts the logarithm of the squared
  deviation from the set network's normal, relative to the squared expected error. Its limit is
  between :data:`.training.NEAR` and :data:`.training.FAR`, at the :data:`.training.WORST` share of
  the sample.
* *The two networks differ.* On a pixel like those of the sample they differ by about twice the squared deviation of
  their mean. More means that neither has seen such a pixel.

The small network averages over similar pixels, so part of its deviation is the noise in the outputs
of the set network. That part does not count.

How good it is
--------------
On five scenes with up to three materials and noise of 0.3 to 2 %, errors are 0.96 to 1.00 times
those of the set network alone, which handles a fifth to a third of the pixels up to 1 % of noise.
Without any limit they are up to 1.04 times as large.

The files: ``network.py`` has the answer, ``training.py`` the training, ``kernels.py`` the compiled
loops of both.
"""
