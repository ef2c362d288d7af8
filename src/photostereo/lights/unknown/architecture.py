"""The shape of the network, shared by the NumPy form that estimates and the torch form that is trained.

Two looks. The first encodes every photograph to a token (convolutions), lets the tokens see each other (attention) and
answers with lights. From these lights a robust matte fit gives normals, and the second look sees the photographs beside
what the fit makes of them. Its pooled maps give better normals, these give each light once more in closed form, and
tokens of all that give the final lights and the error to expect.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Pixels along a side of the square pictures that the network looks at.
SIDE = 96
#: Pixels along a side of the maps on which normals are predicted.
COARSE = SIDE // 4
#: Numbers per photograph between the layers of attention, and heads that share them.
WIDTH, HEADS = 160, 4
#: Channels that are kept of each of the 6 × 6 places of the last map.
KEPT = 24
#: Channels of the network of normals.
NORMAL_WIDTH = 64
#: Inputs of the two looks, and of the second look's tokens besides the map.
FIRST_INPUTS, SECOND_INPUTS, CLUES = 8, 16, 13
#: Layers of attention after each look.
FIRST_LAYERS, SECOND_LAYERS = 1, 2


@dataclass(frozen=True)
class Look:
    """Channels of an encoder after each convolution, and the first one's stride."""

    stride: int
    inputs: int
    stem: int
    fine: int
    middle: int
    last: int


FIRST = Look(2, FIRST_INPUTS, 32, 48, 80, 96)
#: The second look sees pictures of half the size.
SECOND = Look(1, SECOND_INPUTS, 32, 64, 96, 96)
