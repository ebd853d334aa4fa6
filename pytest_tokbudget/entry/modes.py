"""What this pytest process is: controller, worker, or the in-process way of ``--pdb``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..errors import UsageError
from .budgets import marker_keywords
from .fixture import Context, Tokbudget
from .settings import Settings, read_settings
from .worker import WORKER_KEY

if TYPE_CHECKING:
    from .inprocess import InProcess

SETTINGS_KEY = pytest.StashKey[Settings]()
INPROCESS_KEY: pytest.StashKey[InProcess] = pytest.StashKey()


def configure(config: pytest.Config) -> None:
    """Parse the settings and register what this process needs."""
    worker = config.stash.get(WORKER_KEY, None)
    try:
        settings = read_settings(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[SETTINGS_KEY] = settings
    if worker is not None:
        return
    if settings.inprocess:
        from .inprocess import InProcess

        config.stash[INPROCESS_KEY] = InProcess(config, settings)
        config.pluginmanager.register(config.stash[INPROCESS_KEY], "tokbudget-inprocess")
    else:
        from .controller import Controller

        try:
            controller = Controller(config, settings)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(controller, "tokbudget-controller")


def fixture(request: pytest.FixtureRequest) -> Tokbudget:
    """The fixture's value in this process; the controller never builds it."""
    config = request.config
    settings = config.stash[SETTINGS_KEY]
    item = request.node
    assert isinstance(item, pytest.Item)
    marker = marker_keywords(item)
    worker = config.stash.get(WORKER_KEY, None)
    if worker is not None:
        context = Context(
            item,
            settings,
            marker,
            worker.deliver,
            worker.progress.slots,
            worker.spec.blocks,
            worker.spec.evidence,
            True,
            worker.spec.job,
            worker.spec.counts,
        )
        return Tokbudget(context)
    inprocess = config.stash.get(INPROCESS_KEY, None)
    if inprocess is not None:
        return Tokbudget(Context(item, settings, marker, inprocess.deliver_of(item)))
    raise pytest.UsageError(
        f"{item.nodeid}: name tokbudget in the test's signature (or of a fixture it uses); "
        "request.getfixturevalue('tokbudget') comes too late for a fresh process"
    )
