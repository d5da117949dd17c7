"""An inventory of Amazon MSK: the clusters of an account and region (kafka:ListClustersV2)."""

from __future__ import annotations

import time

from kafka import errors as kafka_errors

from durability.collect.inventory import files
from durability.collect.msk_iam import IamTokens, code_of
from durability.errors import Unreachable
from durability.policy.inventory import Entry, InventorySource, Listing

WITHIN = 120
"""Seconds for all pages."""
ALLOW = "allow the audit's role kafka:ListClustersV2"


def read(source: InventorySource) -> Listing:
    """The clusters of a region. Raises Unreachable if AWS doesn't list them, or if there are none. The error has no secrets."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    quick = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
    entries, until = [], time.monotonic() + WITHIN
    try:
        client = IamTokens(dict(source.aws), None).client("kafka", quick)
        for page in client.get_paginator("list_clusters_v2").paginate():
            for cluster in page.get("ClusterInfoList", ()):
                if cluster.get("State") != "DELETING":
                    entries.append(Entry((cluster["ClusterName"], cluster["ClusterArn"])))
            if time.monotonic() > until:
                raise Unreachable(f"MSK took longer than {WITHIN} s to list its clusters; audit again later")
    except kafka_errors.KafkaError as error:  # of the credentials
        raise Unreachable(f"MSK could not be asked: {error.args[0]}") from None
    except ClientError as error:
        raise Unreachable(f"AWS refused kafka:ListClustersV2: {code_of(error)}; {ALLOW}") from None
    except BotoCoreError as error:
        # Texts of botocore's errors may include a profile or an endpoint. Class names don't.
        check = "check the region, and the way from this host to AWS"
        raise Unreachable(f"MSK could not be asked: {type(error).__name__}; {check}") from None
    if not entries and not source.allow_empty:
        # A role of another account may list its clusters, too: none.
        raise Unreachable(f"MSK lists no cluster there; check aws.role.arn and aws.region, or {files.ALLOW_EMPTY}")
    return Listing(source, entries)
