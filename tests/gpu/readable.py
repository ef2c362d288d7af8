"""The dictionary pass in plain torch: what the fused kernel must equal."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any


def plain_pass(R: Tensor, D: Tensor, B: Tensor, mu: Tensor, q: Tensor, update_atoms: bool) -> None:
    """Run the pass in plain torch, on any device: the steps of the fused kernel, one line each."""
    mu, q = mu[:, None], q[:, None]
    first = torch.zeros_like(D[:, 0])
    first[:, 0] = 1
    for i in range(D.shape[1]):
        d, old = D[:, i].clone(), B[:, i].clone()
        y = torch.einsum("gwm,gm->gw", R, d) + old
        g = torch.where(y.abs() < mu, torch.zeros_like(y), y).clamp(-q, q)
        B[:, i] = g
        if update_atoms:
            toward = torch.einsum("gwm,gw->gm", R, g) + d * (old * g).sum(1, keepdim=True)
            length = torch.linalg.vector_norm(toward, dim=1, keepdim=True)
            used = (g != 0).any(1, keepdim=True)
            D[:, i] = torch.where(used, torch.where(length > 0, toward / length, d), first)
        R += torch.einsum("gw,gm->gwm", old, d) - torch.einsum("gw,gm->gwm", g, D[:, i])
