"""The embedder's engine for folders of the Hugging Face kind: transformers, hence torch."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flare_runtime.errors import ModelError, first_line
from flare_runtime.quiet import silence_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TransformersEngine:
    """The forward pass of a transformers model in fp32. Build it with ``load``."""

    def __init__(self, model: "PreTrainedModel") -> None:
        self.dimension = int(model.config.hidden_size)
        self._model = model

    @classmethod
    def load(cls, folder: Path, threads: int, remedy: str) -> "TransformersEngine":
        """Load the weights and let torch use ``threads`` in this process.

        Raises:
            ModelError: they are damaged or incomplete, as ``remedy`` mends, or transformers is
                not installed.

        """
        try:
            import torch
            from safetensors import SafetensorError
            from transformers import AutoModel
        except ImportError as error:
            raise ModelError(
                f"the embedder in {folder} has no graph and needs {error.name}: run pip install "
                f"{error.name}, or `flare models build` where it is installed"
            ) from error
        silence_transformers()
        try:
            model, report = AutoModel.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            reason = first_line(error)
            raise ModelError(f"cannot load the embedder in {folder}: {reason}; {remedy}") from error
        # A pooler is a head of another use: nothing here runs it, and it is often left out.
        missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
        if missing:
            raise ModelError(
                f"cannot load the embedder in {folder}: its weights lack {missing[0]}; {remedy}"
            )
        torch.set_num_threads(threads)
        return cls(model.eval())

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the states after the last layer. *Shape:* ``[B, S]`` twice to ``[B, S, D]``."""
        import torch

        with torch.inference_mode():
            output = self._model(
                input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)
            )
        states: NDArray[np.float32] = output.last_hidden_state.numpy()
        return states
