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


def _encoder(name: str, look: Look) -> dict[str, tuple[int, ...]]:
    def conv(part: str, inputs: int, outputs: int, size: int = 3) -> dict[str, tuple[int, ...]]:
        return {f"{name}.{part}.weight": (outputs, inputs, size, size), f"{name}.{part}.bias": (outputs,)}

    def block(part: str, width: int) -> dict[str, tuple[int, ...]]:
        return {
            **conv(f"{part}.first", width, width),
            **conv(f"{part}.second", width, width),
        }

    flat = (SIDE // 16) ** 2 * KEPT
    return {
        **conv("stem", look.inputs, look.stem),
        **conv("fine", look.stem, look.fine),
        **conv("context", 2 * look.fine, look.fine, 1),
        **block("fine_block", look.fine),
        **conv("middle", look.fine, look.middle),
        **block("middle_block", look.middle),
        **conv("last", look.middle, look.last),
        **conv("kept", look.last, KEPT, 1),
        f"{name}.token.weight": (WIDTH, flat),
        f"{name}.token.bias": (WIDTH,),
    }


def _linear(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _attention(name: str) -> dict[str, tuple[int, ...]]:
    return {
        f"{name}.before.weight": (WIDTH,),
        f"{name}.before.bias": (WIDTH,),
        **_linear(f"{name}.three", WIDTH, 3 * WIDTH),
        **_linear(f"{name}.out", WIDTH, WIDTH),
        f"{name}.between.weight": (WIDTH,),
        f"{name}.between.bias": (WIDTH,),
        **_linear(f"{name}.up", WIDTH, 2 * WIDTH),
        **_linear(f"{name}.down", 2 * WIDTH, WIDTH),
    }


def _normals(name: str) -> dict[str, tuple[int, ...]]:
    inputs = 2 * SECOND.fine + 4
    shapes = {"enter": (NORMAL_WIDTH, inputs), "leave": (3, NORMAL_WIDTH)}
    shapes |= dict.fromkeys(
        ("halved", "quartered", "deep", "up_half", "up_full"), (NORMAL_WIDTH, NORMAL_WIDTH)
    )
    return {f"{name}.{part}.weight": (*shape, 3, 3) for part, shape in shapes.items()} | {
        f"{name}.{part}.bias": shape[:1] for part, shape in shapes.items()
    }


def expected_shapes() -> dict[str, tuple[int, ...]]:
    """Every array of a weights archive by name, with its shape.

    >>> sum(__import__("math").prod(shape) for shape in expected_shapes().values()) < 2_000_000
    True
    """
    layers = {f"first_layers.{n}" for n in range(FIRST_LAYERS)} | {
        f"second_layers.{n}" for n in range(SECOND_LAYERS)
    }
    return {
        **_encoder("first", FIRST),
        **_encoder("second", SECOND),
        **{key: shape for name in sorted(layers) for key, shape in _attention(name).items()},
        **_linear("known", 4, WIDTH),
        **_linear("first_head", WIDTH, 4),
        **_normals("normals"),
        **_linear("clues", CLUES, WIDTH),
        **_linear("second_head", WIDTH, 5),
    }
