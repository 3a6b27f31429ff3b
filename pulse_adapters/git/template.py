"""Where the files lie that a new engine begins with."""

from pathlib import Path

from pulse_core.model.errors import PulseError


def template_folder() -> Path:
    """The template's folder: beside this module in an installed package, at the top of a source tree."""
    here = Path(__file__).resolve()
    for folder in (here.with_name("engine_template"), here.parents[2] / "engine_template"):
        if (folder / "engine.py").is_file():
            return folder
    raise PulseError("the engine's template is missing from this installation; install upulse anew")
