"""The tools of Pulse's MCP server: what an agent may ask, and what it may say of its tasks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from pulse_core.app.append import append
from pulse_core.app.context import HomeContext
from pulse_core.app.effects import outcome_within
from pulse_core.app.engine.promote import Proposal
from pulse_core.app.incidents import incident as find_incident
from pulse_core.app.incidents import incidents
from pulse_core.app.state import current_value, usable_settings
from pulse_core.app.status import home_status
from pulse_core.app.why import why
from pulse_core.mcp.client_scope import OPEN_PULL_REQUEST
from pulse_core.mcp.client_scope import TOOLS as CHANGING
from pulse_core.mcp.events import ClientReads, RuleProposed
from pulse_core.model.durations import UNITS, parse_duration
from pulse_core.model.errors import Refused
from pulse_core.ports.readers import EventQuery
from pulse_core.tasks.admission import known_project
from pulse_core.tasks.events import TaskHeartbeat, TaskMoved
from pulse_core.tasks.fitness import ready_tasks
from pulse_core.tasks.listing import find_task, project_json, task_json
from pulse_core.tasks.projection import TASKS, PendingTasks

MOST_INCIDENTS = MOST_EVENTS = 100
MOST_TASKS = 50
LEASE_US = 15 * UNITS["m"]
OUTCOMES = ("released", "blocked", "failed")
TRANSITIONS = (
    "working: the lease begins anew; released; failed; blocked: for a person; or a column, as Review"
)
PULL_REQUEST_S = 60.0
"""Seconds to wait for one."""

TaskId = Annotated[str, Field(description="the task's id, or enough of its beginning or end", max_length=100)]
ClaimToken = Annotated[
    int | None, Field(description="the token that claim_task returned; none: that of your present claim")
]
Words = Annotated[str, Field(description="why, for whoever reads it later", max_length=1_000)]
Since = Annotated[str, Field(description="how far back, as 30m, 3h or 2d", max_length=20)]
EffectName = Annotated[
    str,
    Field(description="an effect's id or key, a process, a condition, a silence, or pulse", max_length=500),
]
ProjectName = Annotated[str, Field(description="only of this project", max_length=100)]
ResultText = Annotated[str, Field(description="what came of it", max_length=4_000)]


@dataclass(frozen=True)
class Tools:
    """The tools for one caller. home: in which what he says is recorded as his; agent: his name; propose: writes a rule and
    its test into staging, for the gates; claims: the tokens of those that were made in this session, by task."""

    home: HomeContext
    agent: str
    propose: Callable[[str, tuple[str, str]], Proposal]
    claims: dict[str, int] = field(default_factory=dict)

    def status(self) -> Mapping[str, Any]:
        """How this machine and Pulse stand: processes, conditions, open effects, vitals."""
        return home_status(self.home)

    def recent_incidents(self, since: Since = "3h") -> Any:
        """What happened lately, also while you were down: what failed, what Pulse did about it, and whether it helped."""
        began = self.home.clock.now().at - parse_duration(since)
        return [one.spelled() for one in incidents(self.home, max(0, began))][-MOST_INCIDENTS:]

    def why(self, effect: EffectName) -> Mapping[str, Any]:
        """Why something is as it is, and what Pulse did about it last: from the samples and the rule to the outcome."""
        return why(self.home, effect).spelled()

    def incident(self, incident: Annotated[str, Field(max_length=100)]) -> Mapping[str, Any]:
        """One incident, by its id."""
        return find_incident(self.home, incident).spelled()

    def get_my_projects(self) -> Any:
        """The projects whose tasks you may do."""
        tasks, mine = self._tasks(), self.agent
        return [project_json(name, tasks) for name, one in tasks.projects.items() if one.has_member(mine)]

    def get_ready_tasks(self, project: ProjectName = "") -> Any:
        """The tasks that you may claim now, the first to be done first."""
        tasks, now = self._tasks(), self.home.clock.now()
        if project:
            known_project(project, tasks)
        settings = usable_settings(self.home)
        ready = [one for one in ready_tasks(tasks, self.agent, settings, now) if project in ("", one.project)]
        return [task_json(one, now) for one in ready[:MOST_TASKS]]

    def claim_task(self, task: TaskId) -> Mapping[str, Any]:
        """Claim a task for yourself: of all who try, one gets it. Say `working` with transition_task within 15 minutes."""
        id_ = find_task(self._tasks(), task).id
        answer = append(self.home, "task-executing", id_, {"agent": self.agent, "lease_us": LEASE_US})
        if not answer.existing:
            self.claims[id_] = answer.event["seq"]
        return {"task": id_, "token": answer.event["seq"], "lease_s": LEASE_US / UNITS["s"]}

    def get_task_context(self, task: TaskId) -> Mapping[str, Any]:
        """All of a task: what is to be done, where, and what happened to it so far."""
        tasks = self._tasks()
        one = find_task(tasks, task)
        with self.home.events() as log:
            rows = log.events(EventQuery(subject=one.id), limit=MOST_EVENTS, newest_first=True)
            events = [row.spelled() for row in rows if row.kind != TaskHeartbeat.kind][::-1]
        return {**task_json(one, self.home.clock.now()), "events": events}

    def transition_task(
        self,
        task: TaskId,
        to: Annotated[str, Field(description=TRANSITIONS, max_length=60)],
        why: Words = "",
        token: ClaimToken = None,
    ) -> Mapping[str, Any]:
        """Say how it goes with a task that you hold, or move it to another column."""
        if to == "working":
            return self._say(task, TaskHeartbeat.kind, token, {})
        if to in OUTCOMES:
            return self._say(task, f"task-{to}", token, {"error" if to == "failed" else "why": why or to})
        return self._say(task, TaskMoved.kind, token, {"column": to, "why": why})

    def complete_task(
        self, task: TaskId, result: ResultText = "", token: ClaimToken = None
    ) -> Mapping[str, Any]:
        """Say that a task that you hold is done; somebody else accepts it."""
        return self._say(task, "task-acked", token, {"result": result})

    def give_up_task(self, task: TaskId, why: Words, token: ClaimToken = None) -> Mapping[str, Any]:
        """Give up a task that you hold: nobody goes on with it, unless a person wants that."""
        return self._say(task, "task-given-up", token, {"why": why})

    def open_pull_request(
        self,
        task: TaskId,
        title: Annotated[str, Field(description="else the task's", max_length=200)] = "",
        body: Annotated[str, Field(description="else what came of the task", max_length=20_000)] = "",
        draft: Annotated[bool, Field(description="it is not ready for review")] = False,
    ) -> Mapping[str, Any]:
        """Open a pull request for the branch of a task of yours, which must be pushed; one that is there is found again."""
        id_ = find_task(self._tasks(), task).id
        wish = {"action": OPEN_PULL_REQUEST, "key": f"{OPEN_PULL_REQUEST}:{id_}"}
        params = {"task": id_, "title": title, "body": body, "draft": draft}
        asked = append(self.home, "effect", wish["key"], {**wish, "params": params})
        found = outcome_within(self.home, str(asked.event["id"]), PULL_REQUEST_S)
        ended = found.outcome.spelled()["data"] if found.outcome else {}
        return {"effect": found.wish.id, "state": found.phase.value, **(ended or {})}

    def add_silence(
        self,
        match: Annotated[str, Field(description="keys of effects, as 'notify:guidance:*'", max_length=500)],
        lasting: Annotated[str, Field(description="how long, as 30m; at most 1d", max_length=20)],
        why: Words,
    ) -> Mapping[str, Any]:
        """Hold back effects of rules for a while. What survival does can't be held back."""
        data = {"expires_us": parse_duration(lasting), "why": why}
        return {"silence": append(self.home, "silence-added", match, data).event["id"], "match": match}

    def propose_rule(
        self,
        name: Annotated[str, Field(description="its name, as quiet_nights", max_length=60)],
        code: Annotated[
            str, Field(description="the module, whose function of this name is the rule", max_length=50_000)
        ],
        test: Annotated[str, Field(description="its test, a module for pytest", max_length=50_000)],
    ) -> Mapping[str, Any]:
        """Propose a rule: it is written to staging, and tried by all gates and a replay of the last day.

        It is taken back if a gate says no; else a person promotes it, unless the settings do.
        """
        found = self.propose(name, (code, test))
        gates = [one.summary()[:500] for one in found.gates]
        append(
            self.home, RuleProposed.kind, self.agent, {"rule": name, "commit": found.commit, "gates": gates}
        )
        return {**found._asdict(), "gates": [one._asdict() for one in found.gates]}

    def say_reads(self, reads: int) -> None:
        """Have it recorded that the caller has read so often."""
        append(self.home, ClientReads.kind, self.agent, {"reads": reads})

    def release_claims(self) -> None:
        """Give back what was claimed in this session and is still held under that claim: the session has ended."""
        tasks = self._tasks() if self.claims else PendingTasks()
        for id_, token in self.claims.items():
            if (task := tasks.find(id_)) and task.token == token:
                append(self.home, "task-released", id_, {"token": token, "why": "its MCP session has ended"})

    def _say(self, task: str, kind: str, token: int | None, data: Mapping[str, Any]) -> Mapping[str, Any]:
        if (one := find_task(self._tasks(), task)).agent != self.agent and token is None:
            raise Refused(f"{one.id} is not held by {self.agent}; claim it before")
        append(self.home, kind, one.id, {**data, "token": token or one.token or None})
        return task_json(find_task(self._tasks(), one.id), self.home.clock.now())

    def _tasks(self) -> PendingTasks:
        return current_value(self.home, TASKS)


CHANGES: tuple[Callable[..., Any], ...] = tuple(getattr(Tools, name) for name in CHANGING)
TOOLS: tuple[Callable[..., Any], ...] = (
    Tools.status, Tools.recent_incidents, Tools.why, Tools.get_my_projects, Tools.get_ready_tasks,
    Tools.get_task_context, *CHANGES,
)  # fmt: skip
RESOURCES: Mapping[str, Callable[..., Any]] = {
    "pulse://vitals": Tools.status,
    "pulse://projects": Tools.get_my_projects,
    "pulse://tasks/{project}": Tools.get_ready_tasks,
    "pulse://task/{task}": Tools.get_task_context,
    "pulse://effect/{effect}": Tools.why,
    "pulse://incidents/{since}": Tools.recent_incidents,
    "pulse://incident/{incident}": Tools.incident,
}
"""The same for clients that rather read."""
