"""How the fleet stands, in sentences: counts of what the findings say, in words, and nothing that they don't say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from durability.report.data.causes import Causes
from durability.report.words import CHANGES, joined, past, plural

NOW = {  # partition-health's categories that need somebody today
    "offline": ("has partitions offline", "have partitions offline"),
    "under-min-isr": ("refuses acks=all writes", "refuse acks=all writes"),
}


STATES = ("critical", "warning", "UNKNOWN", "EXEMPT", "one-copy", *NOW)


@dataclass(frozen=True)
class Standing:
    """`headline`: one sentence. `details`: the next ones. `tone`: critical, warning, unknown or good. `waived`: failures
    of the last run that stand and that somebody has accepted since."""

    headline: str
    details: list[str]
    tone: str
    waived: int = 0


def first(run: dict) -> bool:
    """Had a run, findings.json's `run`, no earlier one to compare with? A file that doesn't say is taken to have had one."""
    return bool(run["snapshots"]) and all(s.get("compared") is False for s in run["snapshots"])


def compared(changes: dict, waived: int) -> str:
    """What changed since the last run; `changes` as in findings.json, whose resolved ones count the waived.

    >>> compared({"new": 1, "persisting": 4, "resolved": 11}, 1)
    '1 new, 4 persisting, 10 resolved, 1 waived'
    """
    counts = {**changes, "resolved": changes["resolved"] - waived}
    said = [f"{counts[name]:,} {name}" for name in CHANGES]
    return ", ".join(said + [f"{waived:,} waived"] * (waived > 0))


class StatusCounter:
    """Collects, one finding at a time, which resources are in which state."""

    def __init__(self) -> None:
        self.topics: dict[str, set] = {name: set() for name in STATES}
        self.others: Counter = Counter()
        self.resolved: Counter = Counter()
        self.waived = 0

    def add(self, finding: dict) -> None:
        if past(finding):
            self.resolved[finding["why"] or "no reason recorded"] += 1
            return
        self.waived += finding["change"] == "resolved"
        state = finding["severity"] if finding["outcome"] == "FAIL" else finding["outcome"]
        if finding["resource_type"] != "topic":
            self.others[state] += 1
            return
        topic = (finding["cluster"], finding["resource"])
        if state in self.topics:
            self.topics[state].add(topic)
        if finding["outcome"] == "FAIL":
            if finding["control"] == "partition-health" and finding["category"] in NOW:
                self.topics[finding["category"]].add(topic)
            # acks=all may have waited for the leader alone.
            if (
                finding["control"] == "min-insync-replicas"
                and finding["observed"].get("effective_min_insync_replicas") == 1
            ):
                self.topics["one-copy"].add(topic)

    def standing(self, summary: dict, snapshots: list[dict]) -> Standing:
        """The sentences; `summary` as in findings.json, `snapshots` the run's."""
        judged = [s for s in snapshots if s["status"] == "accepted"]
        if not snapshots:
            return Standing("Nothing was judged: the run has no cluster.", [], "unknown")
        if not judged:
            return Standing(_unjudged(snapshots), ["Nothing can be said about topics in this run."], "unknown")
        total = summary.get("resources", {}).get("topic", 0)
        critical, warning = self.topics["critical"], self.topics["warning"] - self.topics["critical"]
        elsewhere = self.others["critical"]
        tone = "critical" if critical or elsewhere else "warning" if summary["severities"].get("warning") else "good"
        if tone == "good" and (summary["outcomes"].get("UNKNOWN") or len(judged) < len(snapshots)):
            tone = "unknown"
        return Standing(
            self._headline(tone, total, len(judged), len(warning)),
            self._details(total, warning, summary, snapshots),
            tone,
            self.waived,
        )

    def _headline(self, tone: str, total: int, clusters: int, warning: int) -> str:
        of = plural(total, "topic") + (f" in {clusters:,} clusters" if clusters != 1 else "")
        critical = len(self.topics["critical"])
        if critical:
            return f"{critical:,} of {of} {_have(critical)} critical findings{self._consequences()}."
        if tone == "critical":
            count = plural(self.others["critical"], "critical finding concerns", "critical findings concern")
            return f"No topic has a critical finding, but {count} brokers or whole clusters."
        if tone == "warning":
            who = f"{warning:,} of {of} {_have(warning)}" if warning else "brokers or clusters have"
            return f"Nothing is critical; {who} warnings."
        if tone == "unknown":
            return "Nothing failed among what could be read, but not everything could: compliance isn't shown."
        return self._good(total, clusters)

    def _good(self, total: int, clusters: int) -> str:
        if not total:
            return "Nothing failed."
        who = "The one topic" if total == 1 else f"All {total:,} topics"
        where = f" in {clusters:,} clusters" if clusters != 1 else ""
        if self.topics["EXEMPT"]:
            return f"{who}{where} {_meet(total)} the policy, or {'is' if total == 1 else 'are'} exempt by a waiver."
        return f"{who}{where} {_meet(total)} what the policy requires of {'it' if total == 1 else 'them'}."

    def _consequences(self) -> str:
        """What these topics do today, for the headline: ": 2 have partitions offline now and …"."""
        said = [f"{len(self.topics[c]):,} {NOW[c][len(self.topics[c]) != 1]} now" for c in NOW if self.topics[c]]
        if self.topics["one-copy"]:
            said.append(f"{len(self.topics['one-copy']):,} may acknowledge a write that only one broker holds")
        return f": {joined(said)}" if said else ""

    def _details(self, total: int, warning: set, summary: dict, snapshots: list[dict]) -> list[str]:
        said = []
        if warning and self.topics["critical"]:
            said.append(f"{plural(len(warning), 'more topic has', 'more topics have')} warnings only.")
        clear = total - len(self.topics["critical"] | self.topics["warning"] | self.topics["UNKNOWN"])
        if 0 < clear < total:
            said.append(f"{plural(clear, 'topic has', 'topics have')} nothing critical, no warning, nothing unknown.")
        unknown = summary["outcomes"].get("UNKNOWN", 0)
        if unknown:
            said.append(f"{plural(unknown, 'verdict is', 'verdicts are')} unknown, which is not compliant.")
        if any(s["status"] != "accepted" for s in snapshots):
            said.append(_unjudged(snapshots))
        return said


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _meet(count: int) -> str:
    return "meets" if count == 1 else "meet"


def _unjudged(snapshots: list[dict]) -> str:
    missing = [s for s in snapshots if s["status"] != "accepted"]
    names = joined([s["cluster"] for s in missing[:5]] + ([f"{len(missing) - 5:,} more"] if len(missing) > 5 else []))
    if len(snapshots) == 1:
        return f"The only cluster could not be judged: {names}."
    return f"{len(missing):,} of {len(snapshots):,} clusters could not be judged: {names}."


def overview(document: dict) -> tuple[Standing, Causes]:
    """How the fleet stands and why, in one pass over the findings of a findings.json."""
    causes, watch = Causes(), StatusCounter()
    for finding in document["findings"]:
        causes.add(finding)
        watch.add(finding)
    return watch.standing(document["summary"], document["run"]["snapshots"]), causes
