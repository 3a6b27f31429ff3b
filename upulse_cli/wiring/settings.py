"""The settings in a file: loaded, checked and written out."""

from pathlib import Path

from pulse_adapters.config.file import load
from pulse_adapters.config.toml_lines import locate, nearest
from pulse_adapters.config.toml_writer import settings_as_toml
from pulse_core.model.errors import SettingsRefused
from pulse_core.settings import Settings


def settings_in(path: Path) -> Settings:
    """The settings; raises SettingsRefused with every fault."""
    return load(path)


def settings_text(settings: Settings) -> str:
    """The settings as TOML, defaults filled in."""
    return settings_as_toml(settings)


def checked_settings(path: Path) -> Settings:
    """The settings, once Apprise too has understood the addresses; raises SettingsRefused."""
    settings = load(path)
    if not settings.notify.urls:
        return settings
    from pulse_adapters.notify.addresses import unknown_services  # Apprise is slow to import

    lines = locate(path.read_text(encoding="utf-8-sig"))
    faults = [
        f"{path}:{nearest(lines, ('notify', 'urls', place))}: notify.urls[{place + 1}]: {words}"
        for place, words in unknown_services(settings.notify).items()
    ]
    if faults:
        raise SettingsRefused(faults)
    return settings
