"""What the pipeline tells whoever measures it, and the default that listens to nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Recorder(Protocol):
    """The part of ``tokbudget.recorder`` that the pipeline uses."""

    def worker(
        self, name: str, role: str | None = None, device: str | None = None, counts: bool = False
    ) -> AbstractContextManager[Any]:
        """Declare the calling thread a worker inside the block."""
        ...

    def step_end(self, tokens: object = None) -> None:
        """Mark that the calling worker's step ended."""
        ...

    def queue(self, q: Any, name: str | None = None, low_water: int | None = None) -> Any:
        """Return a proxy over ``q``."""
        ...

    def wait(self, name: str) -> AbstractContextManager[Any]:
        """Declare a wait."""
        ...

    def stage(self, name: str) -> AbstractContextManager[Any]:
        """Declare a part of a step."""
        ...

    def gauge(self, name: str, value: float) -> None:
        """Record a value."""
        ...


class Unrecorded:
    """Listens to nothing, so that the pipeline runs without the plugin."""

    def worker(
        self,
        name: str,  # noqa: ARG002 - the protocol's names
        role: str | None = None,  # noqa: ARG002
        device: str | None = None,  # noqa: ARG002
        counts: bool = False,  # noqa: ARG002
    ) -> AbstractContextManager[Any]:
        """Declare nothing."""
        return nullcontext()

    def step_end(self, tokens: object = None) -> None:
        """Mark nothing."""

    def queue(self, q: Any, name: str | None = None, low_water: int | None = None) -> Any:  # noqa: ARG002
        """Return ``q`` itself."""
        return q

    def wait(self, name: str) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Declare nothing."""
        return nullcontext()

    def stage(self, name: str) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Declare nothing."""
        return nullcontext()

    def gauge(self, name: str, value: float) -> None:
        """Record nothing."""
