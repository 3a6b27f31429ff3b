"""Sizes as people read them."""


def format_size(count: float) -> str:
    """Bytes in the binary unit that suits them: `512 B`, `1.5 GiB`."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
