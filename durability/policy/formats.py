"""The formats of policy.yaml, waivers.yaml, clusters.yaml and frameworks.yaml, as data.

`load` reads files by them, `durability.schemas` publishes them. Editors show a key's `about` beside it.
"""

from __future__ import annotations

from durability.catalogue import CONTROLS, PROVIDERS, Requirement, requirements
from durability.policy.model import DEGRADED, PAGING, PERIODS
from durability.policy.scalars import (
    AWS,
    DAYS,
    DURATION,
    EXPRESSION,
    RELATIVE,
    S3_ADDRESS,
    UP_TO_30_MINUTES,
    Day,
    Moment,
    ShortName,
)
from durability.shapes import (
    INT16,
    INT64,
    Anything,
    Choice,
    Constant,
    Either,
    Flag,
    ListOf,
    MapOf,
    Member,
    Number,
    Object,
    Shape,
    Text,
    Whole,
    WholeOr,
)

TEXT = Text(blank=False)


def _keys(name: str, about: str = "", /, **members: Member) -> Object:
    return Object(name, members, closed=True, about=about)


def _needed(shape: Shape, about: str = "") -> Member:
    return Member(shape, about=about)


def _may(shape: Shape, about: str = "") -> Member:
    return Member(shape, optional=True, about=about)


def _at_least(low: int, about: str) -> Member:
    return _may(Whole(low=low, high=INT16), about)  # replication factors are int16 on the wire


def _file(format_: str, about: str, /, **members: Member) -> Object:
    schema = _may(Anything(), "where this file's JSON Schema is, for editors; nothing reads it")
    stated = {"format": Member(Constant(format_)), **members, "$schema": schema}
    return Object(format_, stated, closed=True, about=about)


def _range(key: str, low: int, high: int) -> Object:
    """`{min, max}`, both included. Either may be left out."""
    name = f"{key.replace('_', '-')}-range"
    number = Whole(low=low, high=high)
    members = {"min": _may(number, "At least"), "max": _may(number, "At most")}
    return Object(name, members, closed=True, least=1)


def required(requirement: Requirement) -> Member:
    """A key of a tier, as its control's YAML file declares it."""
    if requirement.kind == "integer":
        low, high = int(requirement.min or 0), int(INT64 if requirement.max is None else requirement.max)
        one: Shape = Whole(low=low, high=high)
        if requirement.relative:
            text = RELATIVE[requirement.relative]
            one = WholeOr(f"a whole number, or {text.words}", low, high, text)
        return _may(Either(one, _range(requirement.key, low, high)) if requirement.range else one, requirement.about)
    if requirement.kind == "number":
        return _may(Number(low=requirement.min, high=requirement.max), requirement.about)
    return _may(Flag() if requirement.kind == "boolean" else ListOf(Choice(requirement.choices)), requirement.about)


_PERCENT = Number("a percentage", low=0, high=100, between=True)
OBJECTIVE = Object(
    "objective",
    {
        "writes": _may(_PERCENT, "Partition-minutes in which no single loss stops acks=all writes, in percent"),
        "data": _may(_PERCENT, "Partition-minutes in which no single loss puts data at risk, in percent"),
    },
    closed=True,
    about="The share of partition-minutes that should be more than one failure away from harm (docs/policy.md).",
    least=1,
)
_PAGE_AFTER = Object(
    "page-delays",
    {category: _may(DURATION, "Partitions of this category; without it they never page") for category in PAGING},
    closed=True,
    least=1,
)
TIER = _keys(
    "tier",
    "What a class of topics needs; a key that is left out isn't required.",
    **{key: required(requirement) for key, requirement in requirements().items()},
    objective=_may(OBJECTIVE, "What the report compares the time one failure away with; no control reads it"),
    page_after=_may(
        Either(DURATION, _PAGE_AFTER),
        "How long its topics may be offline or under min ISR before pulses page; without it they never do",
    ),
    waiver_longest=_may(DAYS, "How long a waiver of its topics may last from its approval"),
)

_ABOUT_EXPRESSION = "RE2 expression that matches the whole "

SELECTOR = _keys(
    "selector",
    "Topics, and the tier they are in; the first line that matches decides.",
    match=_may(
        _keys(
            "topic-match",
            "Conditions that must all be met.",
            cluster=_may(EXPRESSION, _ABOUT_EXPRESSION + "cluster id"),
            topic=_may(EXPRESSION, _ABOUT_EXPRESSION + "topic name"),
            internal=_may(Flag(), "Kafka's own topics, or all others"),
            replication_factor=_may(
                Either(Whole(low=1, high=INT16), _range("replication_factor", 1, INT16)),
                "Replicas of the partition that has the fewest: exactly this number, or a range",
            ),
            team=_may(EXPRESSION, _ABOUT_EXPRESSION + "team of the cluster"),
        )
    ),
    tier=_needed(TEXT, "A tier of `tiers`"),
)
APPLICATION = _keys(
    "application",
    "Kafka Streams applications and what is required of their standbys; nothing is of one that no line matches.",
    match=_may(
        _keys(
            "group-match",
            "Conditions that must all be met.",
            group=_may(EXPRESSION, _ABOUT_EXPRESSION + "group id"),
            cluster=_may(EXPRESSION, _ABOUT_EXPRESSION + "cluster id"),
        )
    ),
    tier=_may(TEXT, "The tier of its changelog and repartition topics"),
    rack_aware_tags=_may(ListOf(TEXT), "The clients' tags over which standbys are spread (rack.aware.assignment.tags)"),
    standby_replicas=_at_least(0, "Standbys of each stateful task, at least"),
)

_DELAYS = {name: _may(DURATION, "And the categories that are worse") for name in DEGRADED}
_OF_TIER = _keys("delays-of-a-tier", default=_may(DURATION), **_DELAYS)
_OF_ALL = _keys(
    "delays",
    default=_may(DURATION),
    **_DELAYS,
    tiers=_may(MapOf(Either(DURATION, _OF_TIER)), "By tier; they count before those of a category"),
)
READINGS = _keys(
    "readings",
    "When being at min ISR over time is a finding (KIP-427).",
    prolonged_after=_may(Either(DURATION, _OF_ALL), "How long it may last"),
    bouncing=_may(
        _keys(
            "bouncing",
            changes=_may(Whole(low=1), "Changes of a topic"),
            within=_may(DURATION, "The time in which that many changes are a finding"),
        )
    ),
)
OWNER = _keys(
    "owner",
    "Who the findings on matching resources are for.",
    match=_may(
        _keys(
            "owner-match",
            "Conditions that must all be met. A topic has no group and a group no topic: state one of them.",
            cluster=_may(EXPRESSION, _ABOUT_EXPRESSION + "cluster id"),
            topic=_may(EXPRESSION, _ABOUT_EXPRESSION + "topic name"),
            group=_may(EXPRESSION, _ABOUT_EXPRESSION + "id of a Streams group"),
        )
    ),
    team=_needed(TEXT, "The team"),
)
MAINTENANCE = _keys(
    "maintenance",
    "A window in which the clusters may be at min ISR.",
    **{
        "cluster": _needed(EXPRESSION, _ABOUT_EXPRESSION + "cluster id"),
        "from": _needed(Moment(), "Its start"),
        "to": _needed(Moment(), "Its end, which is no part of it"),
        "reason": _needed(TEXT),
    },
)
RETENTION = _keys(
    "retention",
    "How long the lake keeps what (docs/keeping.md); no verdict depends on it.",
    snapshots=_may(DURATION, "Facts as collected"),
    findings=_may(DURATION, "What nightly runs found"),
    pulses=_may(DURATION, "Which topics and partitions a pulse found unhealthy"),
    counters=_may(DURATION, "Clusters' partition counts"),
    evidence=_may(
        _keys(
            "evidence",
            "The first complete and verified nightly run of each period, with the facts it evaluated.",
            **{"each": _may(Choice(PERIODS)), "for": _may(DURATION)},
        )
    ),
    evidence_folders=_may(DAYS, "The folders of runs in OUT/evidence; without it, they are kept for ever"),
)
EVIDENCE = _keys(
    "evidence-copy",
    "Where each run's evidence is copied, so that it outlives this machine (docs/evidence.md); no verdict depends on it.",
    s3=_needed(S3_ADDRESS, "The bucket, and the beginning of the names of its objects"),
    object_lock=_may(
        _keys(
            "object-lock",
            "How long S3 keeps each object unchanged. The bucket needs Object Lock.",
            mode=_needed(
                Choice(("GOVERNANCE", "COMPLIANCE")), "Who may delete it before: holders of a permission, or nobody"
            ),
            days=_needed(Whole(low=1, high=36500), "From the copy on"),
        )
    ),
)
POLICY = _file(
    "durability-policy/1",
    "Which topics need what, for the Kafka durability audit.",
    name=_may(TEXT, "What reports call it"),
    tiers=_needed(MapOf(TIER, least=1), "Requirements by name"),
    topics=_needed(ListOf(SELECTOR, least=1), "Which topics are in which tier; the first line that matches decides"),
    applications=_may(ListOf(APPLICATION)),
    readings=_may(READINGS),
    maintenance=_may(ListOf(MAINTENANCE)),
    retention=_may(RETENTION),
    evidence=_may(EVIDENCE),
    owners=_may(ListOf(OWNER), "Which team findings are for: the first line that matches, else the cluster's team"),
)

WAIVER = _keys(
    "waiver",
    "A risk that is accepted until a day.",
    control=_needed(EXPRESSION, _ABOUT_EXPRESSION + "id of a control"),
    cluster=_needed(EXPRESSION, _ABOUT_EXPRESSION + "cluster id"),
    resource=_needed(EXPRESSION, _ABOUT_EXPRESSION + "topic name, broker id or group id"),
    owner=_needed(TEXT),
    reason=_needed(TEXT),
    expires=_needed(Day(), "The last day on which it counts, UTC"),
    requested_by=_may(TEXT, "Who asked for it"),
    approved_by=_may(TEXT, "Who approved it; another than the owner"),
    approved_at=_may(Day(), "The day of the approval"),
    approved_count=_may(Whole(low=0), "How many resources it covered then; the report compares it with today's number"),
    risk=_may(TEXT, "What can happen"),
    compensating_control=_may(TEXT, "What limits the risk in the meantime"),
    ticket=_may(TEXT),
)
WAIVERS = _file(
    "durability-waivers/1",
    "Risks accepted until a day, for the Kafka durability audit.",
    waivers=_needed(ListOf(WAIVER)),
)

CLUSTER = _keys(
    "cluster",
    id=_needed(TEXT, "Its name in policies, waivers and reports"),
    connection=_may(TEXT, "The Airflow Connection of type kafka that reaches it; the id unless stated"),
    provider=_may(Choice(tuple(PROVIDERS)), "Who runs it; self unless stated"),
    team=_may(TEXT, "Who owns it; policies can select by it"),
    controllers=_may(
        MapOf(TEXT, Text("controllers' node ids and their racks, such as 100: az1", pattern="[0-9]+")),
        "Rack by KRaft controller id, since Kafka doesn't say",
    ),
    kafka_cluster_id=_may(TEXT, "Kafka's own id of it; a Connection that leads to another one is refused"),
    read_within=_may(UP_TO_30_MINUTES, "How long reading it may take; 2m unless stated, 30m at most"),
    inventory_names=_may(ListOf(TEXT, least=1), "Its other names in inventories, such as an ARN"),
)
INVENTORY = _keys(
    "inventory",
    "A list of the clusters that there are: exactly one of csv, msk and strimzi.",
    name=_may(TEXT, "What reports call it"),
    csv=_may(TEXT, "A CSV file with a line of column names; relative to this file"),
    id=_may(TEXT, "Of a CSV file: the column with the cluster's name; id unless stated"),
    owner=_may(TEXT, "Of a CSV file: the column with the owner"),
    environment=_may(TEXT, "Of a CSV file: the column with the environment"),
    msk=_may(
        _keys("msk", **{key: _may(shape) for key, shape in AWS.items()}),
        "The clusters of Amazon MSK in a region, with the keys of MSK IAM in Connections",
    ),
    strimzi=_may(TEXT, "Strimzi's Kafka resources, a file or folder of YAML or JSON; relative to this file"),
    allow_empty=_may(
        Flag(), "Whether it may list no cluster; otherwise an empty list counts as one that can't be read"
    ),
)
CLUSTERS = _file(
    "durability-clusters/1",
    "The fleet that the Kafka durability audit reads.",
    clusters=_needed(ListOf(CLUSTER)),
    fleet=_may(TEXT, "Its name in the lake; the path of this file unless stated"),
    inventory=_may(ListOf(INVENTORY), "What the fleet is compared with; a cluster that isn't audited is a finding"),
)

STRENGTHS = ("direct", "supporting")
FRAMEWORK_REQUIREMENT = _keys(
    "framework-requirement",
    "A requirement that findings support.",
    id=_needed(TEXT, "As the framework numbers it"),
    title=_needed(TEXT, "A short name of it"),
    controls=_needed(
        ListOf(Choice(tuple(CONTROLS))), "Controls that support it; none: it is about the audit's records"
    ),
    strength=_needed(Choice(STRENGTHS), "Whether the controls check what it asks for, or a part or a precondition"),
    shows=_needed(TEXT, "What findings of these controls show"),
    not_shown=_needed(TEXT, "What else the requirement asks for"),
)
FRAMEWORK = _keys(
    "framework",
    id=_needed(ShortName(), "Its name in options and reports"),
    title=_needed(TEXT),
    requirements=_needed(ListOf(FRAMEWORK_REQUIREMENT, least=1)),
)
FRAMEWORKS = _file(
    "durability-frameworks/1",
    "Which requirements of frameworks the Kafka durability audit supports.",
    frameworks=_needed(ListOf(FRAMEWORK, least=1)),
)
