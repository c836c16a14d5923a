"""Turns a GGUF file into a folder that transformers loads in a second."""

import contextlib
import io
from pathlib import Path

from flare_runtime.errors import ModelError


def dequantise(gguf: Path, folder: Path) -> None:
    """Write the model in float32, its tokenizer and its chat template into ``folder``.

    Raises:
        ModelError: transformers cannot read the file.
        OSError: the folder cannot be written.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # The converter draws progress bars of its own, with no switch to turn them off.
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
            model = AutoModelForCausalLM.from_pretrained(
                gguf.parent,
                gguf_file=gguf.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=torch.float32,
            )
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            for path in folder.iterdir():  # the weights come out readable by their owner only
                path.chmod(0o644)
        except Exception as error:  # tokenizers raises nothing narrower
            if isinstance(error, OSError) and error.errno:
                raise
            reason = str(error).strip().partition("\n")[0]
            raise ModelError(f"cannot convert {gguf.name}: {reason}") from error
