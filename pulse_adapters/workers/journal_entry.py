"""Entries of the journal, as `journalctl --output=json` writes them: who logs gives any field, any number of times."""


def field_text(field: object) -> bytes:
    """A field as bytes: journalctl writes binary ones as a list of numbers, and several of one name as a list of them."""
    if isinstance(field, str):
        return field.encode("utf-8", "replace")
    if isinstance(field, list):
        if all(isinstance(one, int) and 0 <= one < 256 for one in field):
            return bytes(field)
        return b"\n".join(field_text(one) for one in field)
    return b""
