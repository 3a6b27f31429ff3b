"""What the daemon does about guidance: its watcher records changes with others beside it, its rule tells people."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_adapters.guidance.watcher import IDLE_S, OFTEN_S, GuidanceWatcher
from pulse_adapters.memory.clock import ManualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.capability import WatcherContext
from pulse_core.composition import RULES, Settings
from pulse_core.guidance.admission import Superseded
from pulse_core.guidance.events import (
    GuidanceChanged,
    GuidanceInitialized,
    GuidanceUnwatched,
    GuidanceWatched,
)
from pulse_core.guidance.look import next_change
from pulse_core.guidance.projection import GUIDANCE, changes_in
from pulse_core.guidance.rules import remind_of_guidance
from pulse_core.guidance.settings import GuidanceSettings
from pulse_core.guidance.status import lines
from pulse_core.home import HomeLayout
from pulse_core.model.event import Draft, Event
from pulse_core.model.payload import Payload, Role
from pulse_core.projections.state import Snapshot
from pulse_core.record.gate import Gate
from pulse_core.record.view import View
from pulse_core.rules.onion import compose
