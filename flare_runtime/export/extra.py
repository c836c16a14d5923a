"""What only building needs: the packages of the extra ``export``."""

from importlib.util import find_spec

from flare_runtime.errors import ModelError

REQUIRED = ("onnx", "onnx_ir", "onnxruntime_genai", "onnxscript")


def require_extra() -> None:
    """Refuse to go on without them.

    Raises:
        ModelError: one is not installed.
    """
    missing = [package for package in REQUIRED if find_spec(package) is None]
    if missing:
        raise ModelError(
            f"building a graph needs {', '.join(missing)}; run pip install 'flare-runtime[export]'"
        )
