"""What the names of traced events mean: kernels, copies, driver calls, annotations."""

from __future__ import annotations

import re

from .timeline import ApiKind, DeviceKind, SyncKind

STALL_NAME = "Activity Buffer Request"

_API = re.compile(r"^(cuda|cu|hip)[A-Z]\w*$")
_ANNOTATION = re.compile(r"^(ProfilerStep#|Optimizer\.\w+#|nccl:|gloo:|mpi:|ucc:|## )")
_SYNCS = {
    "Context Sync": SyncKind.CONTEXT,
    "Stream Sync": SyncKind.STREAM,
    "Event Sync": SyncKind.EVENT,
    "Stream Wait Event": SyncKind.WAIT_EVENT,
}
_CALLS: tuple[tuple[re.Pattern[str], ApiKind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"GraphLaunch", ApiKind.GRAPH_LAUNCH),
        (r"(Begin|End)Capture", ApiKind.CAPTURE),
        (r"HostFunc", ApiKind.OTHER),
        (r"Launch(Cooperative)?Kernel|cuLaunch", ApiKind.LAUNCH),
        (r"StreamWaitEvent", ApiKind.WAIT_EVENT),
        (r"Synchronize", ApiKind.SYNC),
        (r"Memcpy", ApiKind.COPY),
        (r"Memset", ApiKind.SET),
        (r"Free|HostUnregister|MemUnmap|MemRelease|MemPoolTrim|MemAddressFree", ApiKind.FREE),
        (r"Malloc|HostAlloc|MemAlloc|HostRegister|MemCreate", ApiKind.ALLOC),
        (r"MemMap|MemSetAccess|MemAddressReserve", ApiKind.ALLOC),
    )
)
_NO_CALL = re.compile(r"GetErrorString|GetFuncBySymbol|MemGetInfo|PointerGetAttribute")


def is_api(name: str) -> bool:
    """Whether a host row is a runtime or driver call, not a framework operator."""
    return _API.match(name) is not None


def is_annotation(name: str) -> bool:
    """Whether a device row only repeats a host annotation (no device time of its own)."""
    return _ANNOTATION.match(name) is not None


def sync_kind(name: str) -> SyncKind | None:
    """Kind of a synchronization record; ``None`` for every other device row."""
    return _SYNCS.get(name)


def device_kind(name: str) -> DeviceKind:
    """Kind of a kernel, copy or set; a name not known otherwise is a kernel."""
    if name.startswith("Memcpy"):
        return DeviceKind.COPY
    if name.startswith("Memset"):
        return DeviceKind.SET
    if name.startswith("nccl"):
        return DeviceKind.COMMUNICATION
    return DeviceKind.COMPUTE


def api_kind(name: str) -> ApiKind:
    """Kind of a runtime or driver call."""
    if _NO_CALL.search(name):
        return ApiKind.OTHER
    for pattern, kind in _CALLS:
        if pattern.search(name):
            return kind
    return ApiKind.OTHER


def copy_direction(name: str) -> str:
    """``"HtoD pageable"``, ``"DtoH pinned"``, ``"DtoD"`` … of a copy's event name."""
    match = re.match(r"Memcpy (\w+)", name)
    direction = match.group(1) if match else "unknown"
    host = next((word for word in ("Pageable", "Pinned", "Unified") if word in name), "")
    return f"{direction} {host.lower()}".strip()
