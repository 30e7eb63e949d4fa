"""Health, readiness and metrics: the only routes without a key."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from search_api.models import HealthAnswer
from search_api.problems import ProblemError, unavailable
from search_api.routes.shared import ServicesDep, problems

router = APIRouter(tags=["operations"])


@router.get("/healthz", summary="The process answers", responses=problems())
async def healthz() -> HealthAnswer:
    """Says nothing of OpenSearch: a dead store must not restart every process."""
    return HealthAnswer(status="ok")


@router.get("/readyz", summary="Searches are answered", responses=problems(503))
async def readyz(services: ServicesDep) -> HealthAnswer:
    """The store answers, the indices are there, and the model is the one whose vectors they hold."""
    checks = await services.readiness.checks()
    wrong = [f"{name}: {text}" for name, text in checks.items() if text != "ok"]
    if wrong:
        raise ProblemError(unavailable("store-unavailable", "Not ready: " + "; ".join(wrong) + "."))
    return HealthAnswer(status="ok", checks=checks)


@router.get("/metrics", summary="Prometheus metrics", responses=problems(), response_class=Response)
async def metrics(services: ServicesDep) -> Response:
    """Text exposition format."""
    return Response(generate_latest(services.metrics.registry), media_type=CONTENT_TYPE_LATEST)
