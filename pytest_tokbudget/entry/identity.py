"""From a pytest item to the identity of its workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..records.workload import Workload
from . import wiring
from .budgets import Demand, is_json


def qualname_of(item: pytest.Item) -> str:
    """Classes and function, without parameters: ``"TestTrainer::test_step"``."""
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return "::".join([*classes, getattr(item, "originalname", None) or item.name.split("[")[0]])


def params_of(item: pytest.Item) -> tuple[str, dict[str, Any]]:
    """The parameter id string and the parameter values by argument name."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return "", {}
    return str(callspec.id), dict(callspec.params)


def workload_of_item(item: pytest.Item, demand: Demand, rootdir: Path) -> Workload:
    """Identity and declaration. Raises UsageError for parameters that identify nothing."""
    param_ids, params = params_of(item)
    declaration: dict[str, Any] = {
        "token_kind": demand.budget.token_kind,
        "token_scope": "global",
        "params": {name: value for name, value in params.items() if is_json(value)},
        "workload": dict(demand.workload),
    }
    test = wiring.CollectedTest(item.nodeid, item.path, qualname_of(item), param_ids, params)
    return wiring.workload_of(test, declaration, rootdir=rootdir)
