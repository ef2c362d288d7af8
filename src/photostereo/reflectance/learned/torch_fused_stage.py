"""A stage of the set network on a GPU, without gradients: what lies between two matrix products is one launch.

In plain torch a layer's norm and activation read and write every token seven times; here it is once
(``set_network.cu``). The readable form is :meth:`.torch_network.Stage.forward`.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from photostereo.reflectance.learned.constants import TINY_LAYER
from photostereo.reflectance.learned.torch_network import RmsLinear, Stage
from photostereo.runtime.cuda_kernels import compile_kernel, device_of

_PACKAGE, _SOURCE = "photostereo.reflectance.learned", "set_network.cu"
_THREADS, _MOST_BLOCKS = 256, 1 << 16


def run_stage(stage: Stage, tokens: Tensor) -> Tensor:
    """(B, d, FEATURES) to (B, 4), on the tokens' GPU."""
    sets, count, features = tokens.shape
    with device_of(tokens):
        x = _layer(stage.second, _layer(stage.first, tokens.reshape(-1, features)))
        context = stage.context(_pooled(x, sets, count))
        x = _layer(stage.fourth, _layer(stage.third, x, context, count))
        return stage.out(stage.head(_pooled(x, sets, count))).float()


def _layer(layer: RmsLinear, x: Tensor, context: Tensor | None = None, per_context: int = 0) -> Tensor:
    """One layer of (rows, inputs), with the context of each ``per_context`` rows."""
    y = functional.linear(x, layer.linear.weight, layer.linear.bias)
    kernel = compile_kernel(_PACKAGE, _SOURCE, "activate", WIDTH=y.shape[1], TINY_LAYER=f"{TINY_LAYER}f")
    blocks = min(-(-len(y) * 32 // _THREADS), _MOST_BLOCKS)
    added = y if context is None else context.contiguous()
    kernel.launch(blocks, _THREADS, (y, added, layer.gain, layer.shift, len(y), per_context))
    return y


def _pooled(x: Tensor, sets: int, tokens: int) -> Tensor:
    """As :func:`.torch_network.pooled`, of (sets × tokens, W)."""
    width = x.shape[1]
    out = x.new_empty(sets, 2 * width)
    kernel = compile_kernel(_PACKAGE, _SOURCE, "pool", WIDTH=width, TINY_LAYER=f"{TINY_LAYER}f")
    kernel.launch(min(-(-sets * width // _THREADS), _MOST_BLOCKS), _THREADS, (x, out, sets, tokens))
    return out
