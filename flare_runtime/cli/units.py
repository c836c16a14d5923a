"""Numbers as people read them."""


def readable_size(num_bytes: int) -> str:
    """Decimal units, as packages and downloads use them."""
    size = float(num_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
