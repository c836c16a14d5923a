"""What every engine refuses to run."""

from collections.abc import Sequence

from flare_runtime.errors import ModelError
from flare_runtime.language_model import LanguageModel


def check_request(
    model: LanguageModel, token_ids: Sequence[int], layers: tuple[int, ...], num_logits: int
) -> None:
    """Refuse a pass that no engine can run.

    Raises:
        ModelError: there is no token, no logits or more than tokens are asked for, or the model
            does not give one of the layers.
    """
    if not 1 <= num_logits <= len(token_ids):
        raise ModelError(
            f"a pass must give logits for 1 to all of its {len(token_ids)} tokens, "
            f"was: {num_logits}"
        )
    check_layers(model, layers)


def check_layers(model: LanguageModel, layers: tuple[int, ...]) -> None:
    """Refuse layers that the model does not give.

    Raises:
        ModelError: the critic was made for another model, or the graph without these layers.
    """
    lacking = sorted(set(layers) - model.layers)
    if not lacking and len(set(layers)) == len(layers):
        return
    given = ", ".join(str(layer) for layer in sorted(model.layers)) or "none"
    raise ModelError(
        f"layers must be different ones of those that {model.name!r} gives ({given}), "
        f"was: {list(layers)}; the critic was made for another model, or run "
        f"`flare models build {model.name}` again"
    )
