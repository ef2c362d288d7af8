"""Train any network: AdamW, a rate that falls at the end, averaged weights, checkpoints, a learning curve."""

from __future__ import annotations

import copy
import io
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch._dynamo
from torch import Tensor, nn

from photostereo.core.errors import ParameterError
from photostereo.io.atomic import write_bytes
from photostereo.io.network_weights import digest_of
from photostereo.io.safe import read_npz
from photostereo.runtime.arrays import matmul_precision
from photostereo_lab.training.scenes import Pool, draw_pool

WARM_UP = 300  # steps


@dataclass(frozen=True)
class Settings:
    """The settings that define a training; stored in the checkpoint."""

    minutes: float = 10.0
    seed: int = 0
    rate: float = 1.2e-3
    falling: float = 0.5  # share of the time in which the rate falls to zero
    decay: float = 2e-3  # of the weights
    average: float = 0.999
    validation: float = 1.0  # relative size of the validation set
    compiled: bool = False
    scenes: int = 96  # in a pool
    reuse: int = 16  # number of times a pool is shown


class Task(ABC):
    """A network and its training: endless batches, a loss, and a fixed validation set with a score."""

    #: Prefix of the names of arrays in torch that archives omit.
    prefix: ClassVar[str] = ""
    #: Numbers of photographs, each with the share of batches drawn with it.
    counts: ClassVar[Mapping[int, float]]
    #: Pixels along a side of the scenes.
    side: ClassVar[int]
    #: Share of solids; the others are reliefs.
    solids: ClassVar[float]

    def __init__(self, settings: Settings, device: str) -> None:
        self.settings, self.device = settings, device

    @abstractmethod
    def network(self) -> nn.Module:
        """Return a fresh network."""

    @abstractmethod
    def batches(self) -> Iterator[Any]:
        """Yield endless batches."""

    @abstractmethod
    def loss(self, forward: Callable[..., Any], batch: Any) -> Tensor:
        """Return the loss of one batch; ``forward`` is the network."""

    @abstractmethod
    def draw_validation(self) -> Any:
        """Return the fixed validation set."""

    @abstractmethod
    def evaluate(self, network: nn.Module, fixed: Any) -> dict[str, float]:
        """Evaluate on the fixed validation set; variants are compared by ``score``, the lower the better."""

    @cached_property
    def _fixed(self) -> Any:
        return self.draw_validation()

    def validate(self, network: nn.Module) -> dict[str, float]:
        with torch.no_grad():
            return self.evaluate(network, self._fixed)

    def pools(self) -> Iterator[tuple[Pool, int]]:
        """Yield scenes endlessly, each pool several times, and the number of photographs to take of them."""
        counts, shares = list(self.counts), torch.tensor(list(self.counts.values()))
        while True:
            pool = draw_pool(self.settings.scenes, self.device, self.side, self.solids)
            for _ in range(self.settings.reuse):
                yield pool, counts[int(torch.multinomial(shares, 1))]


def rate_at(settings: Settings, step: int, share: float) -> float:
    """Return the learning rate after a share of the time."""
    falling = min(1.0, (1 - share) / settings.falling)
    return settings.rate * min(1.0, (step + 1) / WARM_UP) * max(falling, 0.0)


def archive_of(network: nn.Module, prefix: str = "") -> bytes:
    """Return the bytes of a weights archive: float16 arrays under torch's names, and their digest."""
    arrays = {
        name.removeprefix(prefix): values.detach().cpu().numpy().astype(np.float16)
        for name, values in network.state_dict().items()
    }
    file = io.BytesIO()
    np.savez_compressed(file, digest=np.array(digest_of(arrays)), **arrays)
    return file.getvalue()


def train(
    task: Task,
    out: Path,
    *,
    resume: bool = False,
    begin: Path | None = None,
    stop_after: float = 0.0,
    steps: int | None = None,
    say: Callable[[str], None] | None = None,
    every: float = 45.0,
) -> nn.Module:
    """Train for the settings' minutes of wall-clock time, counted over all runs; return the averaged network.

    Parameters
    ----------
    out : folder for ``checkpoint.pt``, ``optimizer.pt``, ``curve.jsonl`` and ``weights.npz``
    resume : continue from the checkpoint in that folder
    begin : a weights archive that this training starts from, with a new schedule
    stop_after : minutes after which this run stops with a checkpoint, even if the training is not over
    steps : stop after this number of steps, counted over all runs
    say : receives each line of the learning curve
    every : seconds between two evaluations
    """
    with matmul_precision("high"):
        return _train(task, out, resume, begin, stop_after, steps, say, every)


def _train(
    task: Task,
    out: Path,
    resume: bool,
    begin: Path | None,
    stop_after: float,
    steps: int | None,
    say: Callable[[str], None] | None,
    every: float,
) -> nn.Module:
    settings, device = task.settings, task.device
    torch.manual_seed(settings.seed)
    network = task.network().to(device).to(memory_format=torch.channels_last)
    on_gpu = not device.startswith("cpu")
    if on_gpu:
        torch._dynamo.config.suppress_errors = True  # code that cannot be fused runs unfused
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=settings.rate,
        weight_decay=settings.decay,
        betas=(0.9, 0.99),
        fused=on_gpu,
    )
    if begin is not None:
        load_archive(network, begin, task.prefix)
    average = copy.deepcopy(network)
    step, spent = 0, 0.0
    if resume:
        step, spent = _restore(out, network, average, optimizer, device)
        torch.manual_seed(settings.seed + step)
    out.mkdir(parents=True, exist_ok=True)
    forward: Any = torch.compile(network, dynamic=True) if settings.compiled and on_gpu else network
    begun, already = time.perf_counter(), spent
    total = settings.minutes * 60
    recent, last = torch.zeros((), device=device), begun

    def save() -> None:
        state = {
            "network": network.state_dict(),
            "average": average.state_dict(),
            "step": step,
            "spent": spent,
            "settings": asdict(settings),
        }
        # Replaced atomically: an interruption leaves the last checkpoint intact.
        for name, content in (
            ("checkpoint", state),
            ("optimizer", {"optimizer": optimizer.state_dict()}),
        ):
            file = io.BytesIO()
            torch.save(content, file)
            write_bytes(out / f"{name}.pt", file.getvalue())
        write_bytes(out / "weights.npz", archive_of(average, task.prefix))

    def note() -> None:
        line = {"step": step, "seconds": round(spent, 1), "loss": round(float(recent), 4)}
        average.eval()
        line |= {name: round(value, 3) for name, value in task.validate(average).items()}
        with (out / "curve.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        if say is not None:
            say(json.dumps(line))

    if resume or begin is not None:
        note()
    for batch in task.batches():
        spent = already + time.perf_counter() - begun
        over = spent >= total or (stop_after and spent - already >= stop_after * 60)
        if over or (steps is not None and step >= steps):
            break
        for group in optimizer.param_groups:
            group["lr"] = rate_at(settings, step, spent / total)
        with torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=on_gpu):
            loss = task.loss(forward, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        decay = min(settings.average, 1 - 1 / (step / 10 + 1))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - decay)
        recent = loss.detach() if step == 1 else torch.lerp(recent, loss.detach(), 0.02)
        if step % 50 == 0 and time.perf_counter() - last > every:
            note()
            save()
            last = time.perf_counter()
    if step == 0:
        raise ParameterError(
            f"No step was completed in {settings.minutes:g} minutes: generating the first batch takes longer. Train longer.",
            code="no-training-step",
            minutes=settings.minutes,
        )
    note()
    save()
    return average


def _restore(
    out: Path, network: nn.Module, average: nn.Module, optimizer: torch.optim.Optimizer, device: str
) -> tuple[int, float]:
    """Continue from the files of a training; return steps and seconds so far. Misfits and non-finite values are rejected."""
    path = out / "checkpoint.pt"
    with _explained(path):
        state = torch.load(path, map_location=device, weights_only=True)
        network.load_state_dict(state["network"])
        average.load_state_dict(state["average"])
        step, spent = int(state["step"]), float(state["spent"])
        path = out / "optimizer.pt"
        stored = torch.load(path, map_location=device, weights_only=True)
        optimizer.load_state_dict(stored["optimizer"])
        moments = (value for values in optimizer.state.values() for value in values.values())
        held = [*network.state_dict().values(), *average.state_dict().values(), *moments]
        if not (
            step >= 0 and 0 <= spent < float("inf") and all(torch.isfinite(v).all() for v in held)
        ):
            raise ValueError("it contains non-finite values")
    return step, spent


def load_archive(network: nn.Module, path: Path, prefix: str = "") -> None:
    """Load the numbers of a weights archive into a network."""
    stored = read_npz(path, "network weights", remedy="Use weights that a training wrote.")
    with _explained(path):
        arrays = {
            prefix + name: torch.from_numpy(values).float()
            for name, values in stored.items()
            if name != "digest"
        }
        network.load_state_dict(arrays)
        if not all(torch.isfinite(values).all() for values in arrays.values()):
            raise ValueError("it contains non-finite values")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of torch, which raises any exception for a damaged file, into :class:`ParameterError`."""
    try:
        yield
    except Exception as problem:
        words = (str(problem).splitlines() or [""])[0][:200] or type(problem).__name__
        raise ParameterError(
            f"{path} does not fit this training, or is damaged ({words}). Use the settings with which it was made, or start "
            "over.",
            code="bad-checkpoint",
            file=path,
        ) from problem
