"""Programs that stand in for py-spy: each behaves in one of the ways in which it may fail."""

from __future__ import annotations

import sys
from pathlib import Path

_HEAD = f"""#!{sys.executable}
import signal, sys, time
if "--version" in sys.argv:
    print("py-spy 0.0.1"); sys.exit(0)
out = sys.argv[sys.argv.index("-o") + 1]
"""
BODIES = {
    "refused": """
print("Error: Failed to get process executable name. Check that the process is running.")
print("Reason: Permission denied (os error 13)", flush=True)
sys.exit(1)
""",
    "old": """
print("error: unexpected argument '--native' found", flush=True)
sys.exit(2)
""",
    "silent": "sys.exit(3)\n",
    "stubborn": """
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("py-spy> Sampling process 20 times a second", flush=True)
time.sleep(600)
""",
    "torn": """
print("py-spy> Sampling process 20 times a second", flush=True)
signal.signal(signal.SIGINT, lambda *_: (open(out, "w").write('[{"ph":'), sys.exit(0)))
time.sleep(600)
""",
    "empty": """
print("py-spy> Sampling process 20 times a second", flush=True)
signal.signal(signal.SIGINT, lambda *_: (open(out, "w").write("[]"), sys.exit(0)))
time.sleep(600)
""",
}


def fake_pyspy(folder: Path, how: str) -> str:
    """Write the program that fails ``how`` and return its path."""
    program = folder / "py-spy"
    program.write_text(_HEAD + BODIES[how])
    program.chmod(0o755)
    return str(program)
