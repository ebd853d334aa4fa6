"""Real stages: torch on CPU or CUDA, every worker on its own device and stream."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .config import Model
from .data import DocumentStream
from .disturbances import CorrelatedStall
from .lanes import Lane, release_cached_memory
from .loss import decay, draft_loss
from .masks import Layout, MaskBuilder
from .model import Drafter, Target
from .packing import Batch, Blocks, draw_anchors, make_blocks, pack
from .stages import DrafterStage, TargetStage, Trained, Workshop

TARGET_STALL_MS = 400.0
RUN_AHEAD_STEPS = 2
ANCHOR_COUNTS = 32


@dataclass(frozen=True)
class Computed:
    """A target's output while it is still on its device. ``done`` is ``None`` without CUDA."""

    batch: Batch
    hidden: list[Tensor]
    done: torch.cuda.Event | None


@dataclass(frozen=True)
class HiddenStates:
    """An item of the queue: ``hidden`` ``[S, A·D]`` in host memory."""

    batch: Batch
    hidden: Tensor


class RealTarget:
    """Packs a batch, runs the frozen target, and copies its hidden states to the host."""

    def __init__(
        self,
        workshop: Workshop,
        model: Model,
        target: Target,
        device: torch.device,
        stall: CorrelatedStall,
    ) -> None:
        self.device = str(device)
        self._slots, self._knobs, self._recorder = (
            workshop.size.slots,
            workshop.knobs,
            workshop.recorder,
        )
        self._target, self._stall = target, stall
        self._data = DocumentStream(model.vocabulary)
        self._dtype = getattr(torch, model.dtype)
        self._compute = Lane(device)
        self._copy = Lane(device) if self._knobs.post == "async" else self._compute

    def warm(self) -> None:
        """Run once."""
        self.post(self.compute(0))

    @torch.no_grad()
    def compute(self, index: int) -> Computed:
        """Queue the target's forward pass on batch ``index``."""
        if self._stall.resume_ns:
            self._stall.stand()
        documents = self._data.batch(index, self._slots)
        batch = pack(index, documents, self._slots, self._knobs.docids)
        with self._compute.enter():
            hidden = self._target(batch.tokens.to(self._compute.device))
            done = self._compute.mark()
            if self._knobs.alloc == "churn":
                release_cached_memory()
        self._stall.step_ended(time.monotonic_ns())
        return Computed(batch, hidden, done)

    @torch.no_grad()
    def post(self, computed: Computed) -> HiddenStates:
        """Pack, cast and copy; returns when the hidden states are on the host."""
        with self._copy.enter():
            if computed.done is not None and self._copy.stream is not None:
                self._copy.stream.wait_event(computed.done)
                for each in computed.hidden:
                    each.record_stream(self._copy.stream)
            packed = torch.cat(computed.hidden, dim=-1).to(self._dtype)
            if not packed.is_cuda:
                return HiddenStates(computed.batch, packed)
            if self._knobs.pin == "no":
                return HiddenStates(computed.batch, packed.cpu())
            host = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
            host.copy_(packed, non_blocking=True)
            copied = self._copy.mark()
            with self._recorder.wait("device-to-host copy"):
                if copied is not None:
                    copied.synchronize()
        return HiddenStates(computed.batch, host)


class RealDrafter:
    """Trains one replica: blocks, masks, forward, loss, backward, clip, AdamW."""

    def __init__(
        self, workshop: Workshop, model: Model, target: Target, device: torch.device
    ) -> None:
        self.device = str(device)
        self._size, self._knobs = workshop.size, workshop.knobs
        self._recorder, self._log = workshop.recorder, workshop.log
        self._lane = Lane(device)
        self._chooser = torch.Generator().manual_seed(2)
        self._decay = decay(self._size.block, model.gamma)
        self._mask_token = model.vocabulary - 1
        self._dtype = getattr(torch, model.dtype)
        self.masks = MaskBuilder(
            model.drafter_layers,
            model.window,
            self._knobs.masks,
            eager=self._knobs.mask == "eager",
            dense=device.type == "cpu",
        )
        self.reads = 0
        with self._lane.enter():
            self.drafter = Drafter(model, target).to(device)
            self._optimizer = torch.optim.AdamW(
                self.drafter.parameters(), lr=model.learning_rate, fused=device.type == "cuda"
            )
        self._ends: deque[torch.cuda.Event] = deque()

    def warm(self, item: HiddenStates) -> None:
        """Compile everything by one forward and backward pass that trains nothing."""
        with self._lane.enter():
            loss, _ = self._forward(item, self.anchor_count(1))
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.zero_grad(set_to_none=True)
        if self._lane.stream is not None:
            self._lane.stream.synchronize()

    def anchor_count(self, step: int) -> int:
        """Return N of ``step``: fixed, or another one every step, which recompiles."""
        if self._knobs.anchors == "fixed":
            return self._size.anchors
        most = self._size.anchors
        return most - (step * 7) % min(ANCHOR_COUNTS, most)

    def train(self, item: HiddenStates, step: int) -> Trained:
        """Take one optimizer step."""
        with self._lane.enter():
            loss, blocks = self._forward(item, self.anchor_count(step))
            loss.backward()  # type: ignore[no-untyped-call]
            norm = torch.nn.utils.clip_grad_norm_(self.drafter.parameters(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            value = self._read(loss.detach(), norm, step)
            if self._knobs.alloc == "churn":
                release_cached_memory()
            self._limit_run_ahead()
        real = int((item.batch.document_ids >= 0).sum())
        tokens = {
            "slots": self._size.slots,
            "real": real,
            "loss": blocks.loss_tokens,
            "draft": len(blocks.noise_ids),
        }
        return Trained(tokens, value)

    def _forward(self, item: HiddenStates, anchors: int) -> tuple[Tensor, Blocks]:
        device = self._lane.device
        drawn = draw_anchors(item.batch.loss_mask, anchors, self._chooser)
        blocks = make_blocks(item.batch, drawn, self._decay, self._mask_token)
        send = self._sender()
        with self._recorder.stage("masks"):
            layout = Layout(send(blocks.anchors), send(item.batch.document_ids), self._size.block)
            masks = self.masks.build(layout)
        with torch.autocast(device.type, self._dtype, enabled=self._dtype != torch.float32):
            logits = self.drafter(
                send(item.hidden), send(blocks.noise_ids), send(blocks.positions), masks
            )
        return draft_loss(logits, send(blocks.labels), send(blocks.weights)), blocks

    def _sender(self) -> Callable[[Tensor], Tensor]:
        """Return what copies a host tensor to the device, from pinned memory without waiting."""
        device = self._lane.device
        if device.type == "cpu":
            return lambda tensor: tensor
        if self._knobs.pin == "no":
            return lambda tensor: tensor.to(device)
        return lambda tensor: tensor.pin_memory().to(device, non_blocking=True)

    def _read(self, loss: Tensor, norm: Tensor, step: int) -> float | None:
        """Read the step's figures as the knobs say: all at once now and then, or one by one."""
        due = self._log.is_due(step)
        if self._knobs.sync == "each":
            figures = [self._item(figure) for figure in (loss, norm, loss.exp(), norm.log())]
        elif due:
            self.reads += 1
            figures = torch.stack((loss, norm)).tolist()
        else:
            return None
        if due:
            self._log.write(
                f"{self.device} step {step} loss {figures[0]:.4f} norm {figures[1]:.3f}"
            )
        return figures[0]

    def _item(self, figure: Tensor) -> float:
        self.reads += 1
        return float(figure.item())

    def _limit_run_ahead(self) -> None:
        """Let the host queue at most ``RUN_AHEAD_STEPS`` steps, which bounds device memory."""
        end = self._lane.mark()
        if end is None:
            return
        self._ends.append(end)
        if len(self._ends) > RUN_AHEAD_STEPS:
            with self._recorder.wait("run-ahead of the device"):
                self._ends.popleft().synchronize()


def build_real(workshop: Workshop) -> tuple[list[TargetStage], list[DrafterStage]]:
    """Return all stages, dealt out over the devices there are; targets and drafters of a device
    share its frozen target. Raises ``RuntimeError`` for a size that needs CUDA without it."""
    size = workshop.size
    assert size.model is not None
    devices = _devices(workshop)
    frozen: dict[torch.device, Target] = {}

    def target_on(device: torch.device) -> Target:
        if device not in frozen:
            dtype = getattr(torch, model.dtype)
            frozen[device] = Target(model).to(device=device, dtype=dtype)
        return frozen[device]

    model = size.model
    dealt = [devices[i % len(devices)] for i in range(size.targets + size.drafters)]
    stall = CorrelatedStall(workshop.knobs.stall_every * size.targets, TARGET_STALL_MS)
    targets: list[TargetStage] = [
        RealTarget(workshop, model, target_on(device), device, stall)
        for device in dealt[: size.targets]
    ]
    drafters: list[DrafterStage] = [
        RealDrafter(workshop, model, target_on(device), device) for device in dealt[size.targets :]
    ]
    return targets, drafters


def _devices(workshop: Workshop) -> list[torch.device]:
    if not workshop.size.accelerated:
        return [torch.device("cpu")]
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"size {workshop.size.name!r} needs a CUDA device and torch {torch.__version__} finds "
            "none; choose DFLASH_SIZE=cpu or DFLASH_SIZE=simulated"
        )
    return [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
