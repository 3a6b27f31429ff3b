"""Ports: small protocols that adapters implement; their docstrings state the guarantees.

Those of the daemon have a real adapter and a twin in `pulse_adapters.memory`; one contract suite runs over both. Those that
only commands need (a client of the daemon, a repository, checks of code) are tested with real files and processes.
"""

from pulse_core.model.event import Checkpoint as Checkpoint
from pulse_core.ports.clock import Clock as Clock
from pulse_core.ports.engine import ActionHost as ActionHost
from pulse_core.ports.engine import ActionHosts as ActionHosts
from pulse_core.ports.engine import CannotLoad as CannotLoad
from pulse_core.ports.engine import EngineCodeBroken as EngineCodeBroken
from pulse_core.ports.engine import EngineFault as EngineFault
from pulse_core.ports.engine import FoldResult as FoldResult
from pulse_core.ports.engine import History as History
from pulse_core.ports.engine import LoadedRevision as LoadedRevision
from pulse_core.ports.engine import RecordedInput as RecordedInput
from pulse_core.ports.engine import ReplayBatch as ReplayBatch
from pulse_core.ports.engine import ReservedNames as ReservedNames
from pulse_core.ports.engine import Revision as Revision
from pulse_core.ports.engine import Revisions as Revisions
from pulse_core.ports.engine import RuleHost as RuleHost
from pulse_core.ports.engine import RuleHosts as RuleHosts
from pulse_core.ports.engine import UserProjectionState as UserProjectionState
from pulse_core.ports.executor import Executor as Executor
from pulse_core.ports.executor import GivenUp as GivenUp
from pulse_core.ports.executor import Policy as Policy
from pulse_core.ports.executor import Result as Result
from pulse_core.ports.executor import Safety as Safety
from pulse_core.ports.executor import Unsure as Unsure
from pulse_core.ports.host import ProcessId as ProcessId
from pulse_core.ports.host import ProcessObservation as ProcessObservation
from pulse_core.ports.host import ProcessTable as ProcessTable
from pulse_core.ports.log import EventLog as EventLog
from pulse_core.ports.log import Listener as Listener
from pulse_core.ports.logs import LogBatch as LogBatch
from pulse_core.ports.logs import LogFollower as LogFollower
from pulse_core.ports.logs import MatchedLines as MatchedLines
from pulse_core.ports.logs import Place as Place
from pulse_core.ports.logs import ReadProgress as ReadProgress
from pulse_core.ports.prober import Prober as Prober
from pulse_core.ports.prober import ProbeRequest as ProbeRequest
from pulse_core.ports.prober import ProbeResult as ProbeResult
from pulse_core.ports.prober import Trouble as Trouble
from pulse_core.ports.service_manager import ServiceManager as ServiceManager
from pulse_core.ports.stores import Checkpoints as Checkpoints
from pulse_core.ports.stores import Objects as Objects
from pulse_core.ports.stores import Sweep as Sweep
from pulse_core.ports.stores import SweepResult as SweepResult
from pulse_core.ports.stores import Vitals as Vitals
from pulse_core.ports.transport import OutgoingMessage as OutgoingMessage
from pulse_core.ports.transport import Transport as Transport
from pulse_core.ports.watcher import Watcher as Watcher
