"""The order in which brokers that are down must start, in every remedy that starts some.

An offline partition's finding has the order for its own topic (`durability.remedies.replicas`). Other findings of the cluster
have the same brokers as their cause, so they need it too.
"""

from __future__ import annotations

import re

from durability.catalogue.listing import with_noun
from durability.remedies import elections, providers
from durability.remedies.cluster import StartsFirst, facts_of
from durability.remedies.finding import Finding
from durability.remedies.steps import Remedy, Step

STARTS = re.compile(r"\b([Ss]tart|[Bb]ring back) ((?:these |the )?brokers?\b[^.:;]*)")
IDS = re.compile(r"\b\d+\b")
OWN_ORDER = "before the other replicas of"
"""The words of an order for the finding's own topic."""


def ordered(remedy: Remedy, finding: Finding) -> Remedy:
    """The remedy, with the order of starts before it if it starts brokers that must not start first."""
    needed = facts_of(finding).starts_first
    said = [sentence for step in remedy for sentence in (*step.about, step.unless or "")]
    if not needed or providers.runs_brokers(facts_of(finding).provider) or any(OWN_ORDER in text for text in said):
        return remedy
    named = [found[2] for text in said for found in STARTS.finditer(text)]
    if not any(_starts_another(brokers, first) for brokers in named for first in needed):
        return remedy
    order = _order(needed)
    if facts_of(finding).led is not False:
        return [Step(about=(order,)), *remedy]
    # A broker that finds no controller to register with ends. No step is shown after one that must not run.
    if any(elections.CONTROLLERS_FIRST in text for text in said) and all(step.unless is None for step in remedy):
        return [*remedy, Step(about=(order,))]
    return [Step(about=(f"{elections.CONTROLLERS_FIRST}.", order)), *remedy]


def _starts_another(brokers: str, first: StartsFirst) -> bool:
    """Does a sentence start a broker that isn't one of the first? It may name no ids, or a rack."""
    ids = {int(number) for number in IDS.findall(brokers)}
    return not ids or "rack" in brokers or not ids <= set(first.brokers)


def _order(needed: tuple[StartsFirst, ...]) -> str:
    """The order as a sentence.

    >>> _order((StartsFirst((3,), 1, "orders-0", True),))
    'Start broker 3 first: other replicas of partition orders-0 may lack acknowledged records, and one that starts earlier leads.'
    >>> _order((StartsFirst((2, 3), 1, "a-1", None), StartsFirst((4,), 2, "b-0", None)))  # doctest: +ELLIPSIS
    'The order of starts matters: other replicas of 3 partitions (such as a-1) may lack acknowledged records, and, if unclean ...'
    """
    number, example = sum(first.partitions for first in needed), min(first.example for first in needed)
    what = f"partition {example}" if number == 1 else f"{number:,} partitions (such as {example})"
    unclean = all(first.unclean for first in needed)
    leads = "and one that starts" if unclean else "and, if unclean leader election is on, one that starts"
    lack = f"other replicas of {what} may lack acknowledged records, {leads}"
    if len(needed) == 1:
        return f"Start {with_noun(needed[0].brokers, 'broker')} first: {lack} earlier leads."
    return f"The order of starts matters: {lack} too early leads. The findings of the offline topics state the order."
