"""The part of torchmetrics' `Metric` that a metric made of lists needs, for where torchmetrics is missing."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class StreamingMetric(nn.Module):
    """States that are lists of tensors, concatenated across batches, metrics and processes.

    Names and meaning are those of ``torchmetrics.Metric``: `add_state`, `update`, `compute`, `reset`,
    `merge_state`, and calling a metric for the value of one batch. Under ``torch.distributed`` the value is
    that of all processes, each of which must have seen a batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []

    def add_state(self, name: str, default: list[Any], dist_reduce_fx: str) -> None:
        """Declare a list of tensors."""
        if default or dist_reduce_fx != "cat":
            raise ValueError("only empty lists that are concatenated can be states")
        self._names.append(name)
        setattr(self, name, [])

    def update(self, preds: Any, target: Any) -> None:
        """Take in a batch."""
        raise NotImplementedError

    def compute(self) -> torch.Tensor:
        """The value of all batches so far."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all batches."""
        for name in self._names:
            setattr(self, name, [])

    @property
    def metric_state(self) -> dict[str, Any]:
        """States by name."""
        return {name: getattr(self, name) for name in self._names}

    def merge_state(self, incoming_state: Any) -> None:
        """Add the batches of another metric, or of a dictionary of states."""
        state = incoming_state.metric_state if isinstance(incoming_state, StreamingMetric) else incoming_state
        for name in self._names:
            setattr(self, name, [*state[name], *getattr(self, name)])

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Take in a batch, and return its own value."""
        before = {name: list(state) for name, state in self.metric_state.items()}
        self.reset()
        try:
            self.update(*args, **kwargs)
            return self.compute()
        finally:
            self.merge_state(before)

    def gathered(self, name: str) -> torch.Tensor:
        """All of a state, of all processes."""
        own = torch.cat(getattr(self, name))
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return own
        parts: list[Any] = [None] * torch.distributed.get_world_size()
        # Annotations of PyTorch leave type parameters open.
        torch.distributed.all_gather_object(parts, own.cpu())  # pyright: ignore[reportUnknownMemberType]
        return torch.cat([part.to(own.device) for part in parts])

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Move states along with the module; their precision is not changed."""
        for name in self._names:
            state = getattr(self, name)
            where = [fn(torch.empty(0, device=tensor.device)).device for tensor in state]
            setattr(self, name, [tensor.to(device) for tensor, device in zip(state, where, strict=True)])
        return super()._apply(fn, *args, **kwargs)  # pyright: ignore[reportUnknownMemberType]  # untyped there
