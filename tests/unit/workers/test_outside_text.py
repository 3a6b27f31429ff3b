"""What programs print is text only by luck: whoever decodes it says what becomes of other bytes."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]


def raises(call: ast.Call) -> bool:
    """Whether what the program prints is decoded, and an error if it is no text."""
    given = {word.arg: word.value for word in call.keywords}
    is_text = given.keys() & {"text", "encoding", "universal_newlines"}
    return bool(is_text and getattr(call.func, "attr", "") in PROGRAMS and "errors" not in given)


PROGRAMS = {"Popen", "run", "check_output", "check_call", "call"}


def test_no_output_of_a_program_is_an_error_by_its_bytes() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for package in ("pulse_core", "pulse_adapters", "upulse_cli", "engine_template")
        for file in (ROOT / package).rglob("*.py")
        if "subprocess" in file.read_text()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and raises(node)
    ]
    assert not found
