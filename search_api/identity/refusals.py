"""Why a request has no asker: the answer it gets, and the reason that is counted. One text for every unknown key."""

from __future__ import annotations

from typing import Final, Literal

from search_api.problems import Problem, unavailable

#: Label values of `hopline_auth_failures_total`.
Reason = Literal[
    "missing", "unknown", "expired", "revoked", "token", "token_expired", "suspended", "busy", "unavailable"
]

UNAUTHORIZED: Final = Problem(
    kind="unauthorized",
    detail="Give a key that this service knows: `Authorization: Bearer KEY`.",
    headers={"www-authenticate": 'Bearer realm="hopline"'},
)
SUSPENDED: Final = Problem(
    kind="tenant-suspended", detail="This tenant is suspended; whoever operates the installation can say why."
)
BUSY: Final = unavailable(
    "rate-limited", "Too many keys are asked about that nobody has used of late. Try again.", 1.0
)
NO_TOKEN_KEYS: Final = unavailable(
    "identity-unavailable", "The keys that tokens are signed with can't be read now.", 5.0
)


class Refused(Exception):  # noqa: N818 - named as the fact
    """The request ends with `problem`. Of what can't be known now (the store is away), a Transient tells."""

    def __init__(self, reason: Reason, problem: Problem = UNAUTHORIZED) -> None:
        super().__init__(reason, problem)
        self.reason: Reason = reason
        self.problem = problem
