"""A folder into which packages are installed as an installer would do it: their files, and the metadata beside them."""

import shutil
import tomllib
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "plugin_sample"


def install(site: Path, source: Path = SAMPLE) -> None:
    """Put a package, which has to be pure Python, into a folder for packages."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    package = project["name"].replace("-", "_")
    shutil.copytree(source / package, site / package, ignore=shutil.ignore_patterns("__pycache__"))
    beside = site / f"{package}-{project['version']}.dist-info"
    beside.mkdir()
    beside.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), "")
    ]
    beside.joinpath("entry_points.txt").write_text("\n".join(lines))


def made(root: Path, name: str, module: str, value: str = "PLUGIN") -> Path:
    """The source of a package with one module and one entry point."""
    package = root / name
    (package / name).mkdir(parents=True)
    (package / name / "__init__.py").write_text(module)
    (package / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "0.1"\n'
        f'[project.entry-points."pulse.plugins"]\n{name} = "{name}:{value}"\n'
        f'[project.entry-points.console_scripts]\n{name} = "{name}:main"\n'
    )
    return package
