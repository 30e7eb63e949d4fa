"""Three kinds of fault, one base.

`Transient`: try this work again, commit nothing. `PoisonRecord`: park the record in dead letters and go on.
`HoplineError` subclasses that are neither are told to the person who called. Anything else is a bug: a worker
leaves at once without acknowledging (docs/explanation/faust.md), so that the work is repeated after a restart.
"""

from __future__ import annotations


class HoplineError(Exception):
    """Base of everything that Hopline raises on purpose; its text says what to do next."""


class ConfigurationError(HoplineError):
    """A setting is missing or contradicts another; the text names the setting."""


class WrongUsage(HoplineError):  # noqa: N818 - a kind of answer, not of fault
    """What was given is wrong (exit 2 of the command line); the text names the argument."""


class Transient(HoplineError):  # noqa: N818 - a control-flow signal, named as the rules name it
    """A service is away or overloaded: the same call may succeed later."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason, retry_after)
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.reason


class Away(Transient):
    """Nothing answers at all. `service` names what is away, for the person who called."""

    def __init__(self, service: str, reason: str) -> None:
        super().__init__(reason)
        self.service = service


class PoisonRecord(HoplineError):  # noqa: N818 - see above
    """A record that no retry can mend. `error_class` is one of a closed set (a metric label)."""

    def __init__(self, error_class: str, reason: str) -> None:
        super().__init__(error_class, reason)
        self.error_class = error_class
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.error_class}: {self.reason}"


class VaultUnavailable(HoplineError):  # noqa: N818 - see above
    """The vault's root is missing, unreadable or suspiciously empty: nothing may be concluded from it."""


class RefusedInput(HoplineError, ValueError):  # noqa: N818 - see above
    """What a model, or what stands before it, can't take: a text, or labels and patterns to read it with."""


class RefusedRequest(HoplineError, ValueError):  # noqa: N818 - see above
    """The store or its gate does not take this request, now or later. `status` is HTTP's."""

    def __init__(self, status: int, error_type: str, reason: str) -> None:
        super().__init__(status, error_type, reason)
        self.status = status
        self.error_type = error_type
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.error_type}: {self.reason}"
