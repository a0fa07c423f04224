"""How a simulation is answered."""

from __future__ import annotations

from pydantic import BaseModel, Field

Values = list[float]
Known = list[float | None]


class WaitsModel(BaseModel):
    """From asking until the first start, in seconds."""

    many: int = Field(description="How many started.")
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float = Field(description="Those who never started are among them.")


class TenantModel(BaseModel):
    name: str
    waits: WaitsModel
    share: float | None = Field(
        description="What it got of the places that it was due while several wanted more; null: "
        "it never had to share."
    )


class PriorityModel(BaseModel):
    priority: int
    waits: WaitsModel


class GateSeriesModel(BaseModel):
    kind: str
    name: str
    cap: float | None
    mean: float = Field(description="Places in use, on average.")
    peak: int
    closed: float = Field(description="Share of the time in which it was closed.")
    learns: bool
    inside: Values = Field(description="Places in use in each span.")
    closed_in: Values = Field(description="Share of each span in which it was closed.")
    believed: Known = Field(description="The learned limit in calls a minute, at its end.")


class RunSeriesModel(BaseModel):
    """One value for each span; calls are per minute."""

    span_s: float
    came: Values
    taken: Values = Field(description="Calls that the upstream took.")
    refused: Values
    failed: Values
    limit: Known = Field(description="What the upstream really bears; null: no model says so.")
    waiting: Values
    running: Values


class RecordedModel(BaseModel):
    """Waits of the same jobs, as they were and as they would be."""

    many: int
    p50_s: float
    p95_s: float
    would_p50_s: float
    would_p95_s: float


class RunModel(BaseModel):
    name: str
    seed: int
    duration_s: float
    ended_after_s: float
    finished_after_s: float | None = Field(description="Null: some never ended.")
    stopped: str = Field(description="Why it ended early: time, calls or asked; empty: it did not.")
    came: int
    calls: int
    completed: int
    failed: int
    taken: int
    refused: int
    banned: int
    unwell: int
    online: int
    online_failed: int
    turned_away: int
    left: int = Field(description="Not done when it ended.")
    limit_per_minute: float | None
    use: float | None = Field(description="Share of the limit in use while somebody waited.")
    fairness: float | None = Field(description="Jain's index; null: nobody had to share.")
    waits: WaitsModel
    done_p50_s: float
    done_p95_s: float
    tenants: list[TenantModel]
    priorities: list[PriorityModel]
    gates: list[GateSeriesModel]
    series: RunSeriesModel
    recorded: RecordedModel | None
    took_s: float | None


class FactModel(BaseModel):
    """One figure that differs."""

    what: str
    before: float | None
    after: float | None
    better: bool | None


class SimulationModel(BaseModel):
    kind: str
    name: str
    load: str
    shortened_to_s: float | None = Field(
        description="Less time was simulated than asked for, since there was not enough to do more."
    )
    left_out: int = Field(description="Of a replay: jobs that cannot be replayed.")
    runs: list[RunModel] = Field(description="As it is, and what if.")
    facts: list[list[FactModel]] = Field(description="What differs, the weightiest first.")
    verdict: list[str] = Field(description="The same in sentences.")
