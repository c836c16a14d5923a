"""Facts of the machine that figures depend on, and the file that figures are written to."""

import json
import os
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results.json"
PACKAGES = ("onnxruntime", "onnxruntime-genai", "torch", "transformers", "numpy")


def facts() -> dict[str, object]:
    """Processor, cores, memory, versions and the day."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        "date": date.today().isoformat(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return platform.processor()
    lines = info.read_text(encoding="utf-8").splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    flags = next((line for line in lines if line.startswith("flags")), "")
    useful = [flag for flag in ("avx2", "avx512_vnni", "avx512_bf16") if f" {flag}" in flags]
    return f"{name} ({', '.join(useful)})"


def write_result(name: str, figures: dict[str, object]) -> None:
    """Put the figures of one benchmark beside those of the others."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    results[name] = {**figures, "machine": facts()}
    text = json.dumps(dict(sorted(results.items())), indent=2, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))
