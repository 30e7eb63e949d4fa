"""`hopline-ping URL …`: does a process answer? The health check of the images, hence the standard library only.

`hopline` itself takes half a second of CPU to load, too much for what is done every few seconds in every container.
One URL that answers is enough: an image can't know which of Hopline's processes it will run.

Exit codes: 0 one answered with 2xx · 1 none did · 2 wrong usage.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

TIMEOUT_SECONDS = 3.0
#: Of an answer: enough for its reason, and health logs are kept.
_SHOWN_BYTES = 200
_USAGE = "usage: hopline-ping http://HOST:PORT/PATH …   (exit 0: one of them answers with 2xx)"


def main() -> None:
    sys.exit(ping(sys.argv[1:]))


def ping(urls: Sequence[str]) -> int:
    """Asks in order until one is well, and says on standard output what was heard; gives the exit code."""
    places = [place for url in urls if (place := _place(url)) is not None]
    if not urls or len(places) < len(urls):
        print(_USAGE, file=sys.stderr)  # noqa: T201 - the command's own words
        return 2
    for place in places:
        well, heard = _ask(place)
        print(f"{place.geturl()}: {heard}")  # noqa: T201 - the command's own words
        if well:
            return 0
    return 1


def _place(url: str) -> SplitResult | None:
    """None for what is no plain HTTP address."""
    try:
        place = urlsplit(url)
        fine = place.scheme == "http" and place.hostname and place.port != 0
    except ValueError:
        return None
    return place if fine else None


def _ask(place: SplitResult) -> tuple[bool, str]:
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", place.path or "/")
        answer = connection.getresponse()
        body = answer.read(_SHOWN_BYTES).decode(errors="replace")
    except (OSError, http.client.HTTPException) as exc:
        return False, str(exc) or type(exc).__name__
    finally:
        connection.close()
    return 200 <= answer.status < 300, f"{answer.status} {' '.join(body.split())}"


if __name__ == "__main__":
    main()
