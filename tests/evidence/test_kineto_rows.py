from __future__ import annotations

from dataclasses import dataclass

from pytest_tokbudget.evidence.kineto_rows import rows_of


@dataclass
class OldEvent:
    """An event with the methods that every supported torch has."""

    label: str
    type: int = 1
    start: int = 100

    def name(self) -> str:
        return self.label

    def device_type(self) -> int:
        return self.type

    def device_index(self) -> int:
        return 0

    def device_resource_id(self) -> int:
        return 7

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return 20

    def correlation_id(self) -> int:
        return 5

    def linked_correlation_id(self) -> int:
        return 6

    def start_thread_id(self) -> int:
        return 1


@dataclass
class NewEvent(OldEvent):
    """An event that also tells whether it is an annotation, and its metadata."""

    annotation: bool = False
    metadata: str = ""

    def is_user_annotation(self) -> bool:
        return self.annotation

    def metadata_json(self) -> str:
        if not self.metadata:
            raise RuntimeError("not exposed")
        return self.metadata


def test_columns_come_from_the_methods_that_exist() -> None:
    rows, names = rows_of([OldEvent("gemm"), OldEvent("cudaLaunchKernel", 0), OldEvent("gemm")])
    assert names == ("gemm", "cudaLaunchKernel")
    assert rows.tolist()[0] == [0, 0, -1, 1, 0, 7, 100, 20, 5, 6, 1]
    assert rows[:, 3].tolist() == [1, 0, 1]
    assert rows[:, 1].tolist() == [0, 1, 0]


def test_device_annotations_are_left_out_and_host_ones_kept() -> None:
    rows, _ = rows_of([NewEvent("step", annotation=True), NewEvent("step", 0, annotation=True)])
    assert rows[:, 3].tolist() == [0]


def test_bytes_of_copies_come_from_their_metadata() -> None:
    copy = "Memcpy HtoD (Pinned -> Device)"
    rows, _ = rows_of(
        [
            NewEvent(copy, metadata='"stream": 7, "bytes": 4096, "memory bandwidth": 1.0'),
            NewEvent(copy),
            NewEvent("gemm", metadata='"bytes": 1'),
        ]
    )
    assert rows[:, 2].tolist() == [4096, -1, -1]


def test_no_events_give_no_rows() -> None:
    rows, names = rows_of([])
    assert rows.shape == (0, 11)
    assert names == ()
