"""Is it ready? One attempt each, with a time limit, never an exception for "not yet"."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError

_ATTEMPT_SECONDS = 5.0


async def kafka_answers(servers: str) -> bool:
    """The broker has a controller, answers metadata requests and coordinates groups.

    A fresh broker makes its offsets topic when it is first asked for a coordinator: until then every look at a
    group's lag fails.
    """
    quiet = logging.getLogger("aiokafka")
    level = quiet.level
    # A refused connection is what waiting looks like: not worth an error line each time.
    quiet.setLevel(logging.CRITICAL)
    admin = AIOKafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(_ATTEMPT_SECONDS * 1000))
    try:
        await asyncio.wait_for(admin.start(), _ATTEMPT_SECONDS)
        await asyncio.wait_for(admin.list_topics(), _ATTEMPT_SECONDS)
        await asyncio.wait_for(admin.find_coordinator("hopline.readiness"), _ATTEMPT_SECONDS)
    except GroupAuthorizationFailedError:
        return True  # somebody else's broker, and it answers
    except (KafkaError, OSError, TimeoutError):
        return False
    else:
        return True
    finally:
        await admin.close()
        quiet.setLevel(level)


async def opensearch_answers(url: str) -> bool:
    """The node is up and every primary is allocated. Old data are red for a moment after the start."""
    health = await asyncio.to_thread(get_json, f"{url}/_cluster/health?wait_for_status=yellow&timeout=2s")
    return bool(health) and health.get("status") in {"yellow", "green"} and not health.get("timed_out")


async def service_ready(url: str) -> bool:
    """`/readyz` of one of our own processes answers 200."""
    return await asyncio.to_thread(_status, f"{url}/readyz") == 200


def get_json(url: str) -> dict[str, Any]:
    """The JSON object behind a loopback URL; empty while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=_ATTEMPT_SECONDS) as answer:  # noqa: S310 - http to loopback
            found = json.loads(answer.read())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=_ATTEMPT_SECONDS) as answer:  # noqa: S310 - http to loopback
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code
    except OSError:
        return 0
