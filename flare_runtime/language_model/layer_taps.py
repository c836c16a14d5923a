"""Reads the residual streams of a transformers model while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from flare_runtime.errors import ModelError


class LayerTaps:
    """Reads residual streams by forward hooks, which cost nothing but the copy.

    Numbered as ``hidden_states``: 0 is the embeddings, i the output of decoder layer i; the last
    one is after the final norm.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        decoder = model.get_decoder()
        layers = _decoder_layers(decoder, model.config.num_hidden_layers)
        modules = [decoder.get_input_embeddings(), *layers[:-1], decoder]
        self.layers = frozenset(range(len(modules)))
        self._wanted: frozenset[int] = frozenset()
        self._states: dict[int, torch.Tensor] = {}
        for index, module in enumerate(modules):
            module.register_forward_hook(self._hook(index))

    def _hook(self, index: int) -> Any:  # noqa: ANN401
        def keep(module: Any, args: Any, output: Any) -> None:  # noqa: ANN401
            if index in self._wanted:
                self._states[index] = output if isinstance(output, torch.Tensor) else output[0]

        return keep

    @contextmanager
    def tapped(self, layers: tuple[int, ...]) -> Iterator[dict[int, torch.Tensor]]:
        """Collect the states of ``layers`` from the passes run inside. *Shape:* ``[1, S, H]``."""
        self._wanted, self._states = frozenset(layers), {}
        try:
            yield self._states
        finally:
            self._wanted, self._states = frozenset(), {}


def _decoder_layers(decoder: Any, num_layers: int) -> list[torch.nn.Module]:  # noqa: ANN401
    """The list of decoder layers, however the architecture calls it."""
    for module in decoder.children():
        if isinstance(module, torch.nn.ModuleList) and len(module) == num_layers:
            return list(module)
    raise ModelError(
        f"cannot find the {num_layers} decoder layers of a {type(decoder).__name__}; "
        "choose another generator"
    )
