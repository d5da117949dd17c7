#!/bin/bash
# Prepares what Airflow's services need before they start. It may run again.
set -euo pipefail
airflow db migrate
airflow pools set kafka_durability 8 "Reading clusters: how many groups of them at once"
python - <<'PYTHON'
import os
from urllib.parse import urlparse

import boto3

bucket = urlparse(os.environ["DURABILITY_LAKE"]).netloc
client = boto3.client("s3")
if bucket not in {b["Name"] for b in client.list_buckets()["Buckets"]}:
    client.create_bucket(Bucket=bucket)
PYTHON
