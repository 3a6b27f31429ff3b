"""Where the packages of plugins are; none of their code is run for that."""

from collections.abc import Mapping
from importlib.util import find_spec


def roots_of_plugins(plugins: Mapping[str, str]) -> Mapping[str, str]:
    """The folder or file of each plugin's package, with its name; nothing is imported for it."""
    found = {}
    for entry in plugins.values():
        package = entry.partition(":")[0].partition(".")[0]
        spec = find_spec(package)
        if spec is None:
            continue
        if spec.submodule_search_locations:
            found[next(iter(spec.submodule_search_locations))] = package
        elif spec.origin:
            found[spec.origin] = f"{package}.py"
    return found
