"""What a worker's pytest must not do a second time, although it gets the controller's arguments."""

from __future__ import annotations

import argparse
import os
from pathlib import PurePath
from typing import Any

import pytest

NEUTRAL: dict[str, Any] = {
    # files that the controller writes
    "xmlpath": None,
    "log_file": os.devnull,
    "pastebin": None,
    "report_log": None,
    "htmlpath": None,
    "json_report": False,
    "allure_report_dir": None,
    "debug": None,
    # which items, and how many failures: the worker has one
    "maxfail": 0,
    "continue_on_collection_errors": True,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "cacheclear": False,
    "stepwise": False,
    "stepwise_skip": False,
    "stepwise_reset": False,
    # nobody is there to debug with
    "usepdb": False,
    "trace": False,
    # one process, one run, nothing attached
    "numprocesses": None,
    "dist": "no",
    "tx": [],
    "looponfail": False,
    "reruns": 0,
    "cov_source": [],
    "no_cov_should_warn": False,
    "memray": False,
}
"""Option → the value that switches it off; only options that exist are touched."""

UNWANTED_PLUGINS = (
    "lfplugin",
    "nfplugin",
    "stepwiseplugin",
    "rerunfailures",
    "pytest_rerunfailures",
)
"""They write the cache, or repeat the item, whatever the options say."""


def neutralize(option: argparse.Namespace) -> None:
    """Switch off everything in ``NEUTRAL`` that this pytest and its plugins know."""
    for name, value in NEUTRAL.items():
        if hasattr(option, name):
            setattr(option, name, list(value) if isinstance(value, list) else value)


def unregister_unwanted(config: pytest.Config) -> None:
    """Take out the plugins that no option switches off."""
    for name in UNWANTED_PLUGINS:
        if config.pluginmanager.hasplugin(name):
            config.pluginmanager.unregister(name=name)


def file_name(nodeid: str) -> str:
    """The name of the file that a node id or argument is in: ``"a/b.py::test_c"`` → ``"b.py"``."""
    return PurePath(nodeid.partition("::")[0]).name


def only_arguments_for(nodeid: str, config: pytest.Config) -> None:
    """Leave out arguments that name other files than the item's.

    Directories stay. With ``--pyargs`` a name says nothing about its file, so all stay.
    """
    if config.getoption("pyargs"):
        return
    base = config.invocation_params.dir
    own = file_name(nodeid)
    kept = [
        arg
        for arg in config.args
        if file_name(arg) == own or (base / arg.partition("::")[0]).is_dir()
    ]
    if kept:
        config.args[:] = kept
