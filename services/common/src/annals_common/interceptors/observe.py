"""Request ids, one log line and the metrics of every call; and errors as statuses."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from annals_common.errors import AnnalsError, DeadlineExceededError
from annals_common.interceptors.chain import Call
from annals_common.metrics import INCIDENTS, RPC_CALLS, RPC_IN_FLIGHT, RPC_SECONDS
from annals_common.status import trailing_metadata

REQUEST_ID_METADATA_KEY = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
log = structlog.get_logger()


@asynccontextmanager
async def observe(call: Call) -> AsyncIterator[None]:
    """Bind the ids, turn errors into statuses, log and count the outcome."""
    call.request_id = _request_id(call)
    structlog.contextvars.bind_contextvars(request_id=call.request_id, rpc=call.method)
    started = time.perf_counter()
    outcome: AnnalsError | None = None
    RPC_IN_FLIGHT.labels(call.service_name).inc()
    try:
        yield
    except asyncio.CancelledError:
        _record(call, started, "CANCELLED", "CANCELLED")
        raise
    except AnnalsError as error:
        outcome = error
    except TimeoutError:
        outcome = DeadlineExceededError()
    except Exception as error:  # noqa: BLE001 - the last line of defence
        outcome = _incident(call, error)
    finally:
        RPC_IN_FLIGHT.labels(call.service_name).dec()
    if outcome is None:
        _record(call, started, "OK", "")
        return
    _record(call, started, outcome.code.name, outcome.reason)
    await call.context.abort(outcome.code, outcome.message, trailing_metadata(outcome))


def _request_id(call: Call) -> str:
    given = call.metadata.get(REQUEST_ID_METADATA_KEY, "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _record(call: Call, started: float, code: str, reason: str) -> None:
    seconds = time.perf_counter() - started
    RPC_CALLS.labels(call.service_name, call.method_name, code, reason).inc()
    RPC_SECONDS.labels(call.service_name, call.method_name).observe(seconds)
    level = "debug" if code == "OK" else "info"
    getattr(log, level)("rpc", code=code, reason=reason, duration_ms=round(seconds * 1000, 2))


def _incident(call: Call, error: Exception) -> AnnalsError:
    incident_id = secrets.token_hex(4)
    INCIDENTS.labels(call.service_name, call.method_name).inc()
    log.error("incident", incident_id=incident_id, exc_info=error)
    return AnnalsError(
        f"a defect of ours; quote incident {incident_id}", metadata={"incident_id": incident_id}
    )
