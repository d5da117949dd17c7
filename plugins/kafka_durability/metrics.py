"""The app that serves metrics.prom below the address of Airflow's API server: `GET /durability/metrics`.

Airflow doesn't authenticate requests to a plugin's app. So the whole app depends on `authorize`.
"""

from __future__ import annotations

import hmac
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag
from anyio import from_thread
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from durability.errors import Refused
from kafka_durability.connections import find
from kafka_durability.settings import out_folder

CONNECTION = "durability_metrics"
"""The optional Connection whose password Prometheus sends: Airflow's own tokens expire."""
PREFIX = "/durability"

# FastAPI resolves annotations in this module's globals: each name in them has to be imported above.
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


def authorize(request: Request, bearer: Bearer) -> None:
    """Let in who sends the Connection's password, and users of Airflow who may read the runs of nightly_audit.

    Raises HTTPException: 401 without credentials, 403 for others.
    """
    if bearer and _is_password(bearer.credentials):
        return
    user = from_thread.run(get_user, request, None, bearer)
    requires_access_dag("GET", DagAccessEntity.RUN, "nightly_audit")(request, user)


def _is_password(token: str) -> bool:
    try:
        connection = find(CONNECTION)
    except Refused as error:
        raise HTTPException(503, str(error)) from None
    password = connection.password if connection else None
    return bool(password) and hmac.compare_digest(token.encode(), str(password).encode())


app = FastAPI(
    title="Kafka Durability Audit", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(authorize)]
)


@app.get("/metrics")
def metrics() -> Response:
    """metrics.prom as the newest report in the out folder has it. Nothing is computed for a scrape.

    503 if it can't be read: figures of zero would look like an audit without findings.
    """
    from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

    from durability.report.formats.metrics import FILE

    try:
        content = (out_folder() / FILE).read_bytes()
    except FileNotFoundError:
        raise HTTPException(503, f"no report in {out_folder()} yet; DURABILITY_OUT names the folder") from None
    except OSError as error:
        raise HTTPException(503, f"{out_folder() / FILE}: {error.strerror}") from None
    return Response(content, media_type=CONTENT_TYPE_PLAIN_0_0_4, headers={"X-Content-Type-Options": "nosniff"})
