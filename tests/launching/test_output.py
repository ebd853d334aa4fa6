"""Following and shortening a worker's output."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.launching.output import OutputFollower, tail


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_all_bytes_arrive_as_the_text_they_are(
    tmp_path_factory: object, parts: list[bytes]
) -> None:
    path = Path(tmp_path_factory.mktemp("log")) / "log"  # type: ignore[attr-defined]
    path.touch()
    seen: list[str] = []
    follower = OutputFollower(path, seen.append)

    for part in parts:
        with path.open("ab") as file:
            file.write(part)
        follower.pass_on()
    follower.close()

    assert "".join(seen) == b"".join(parts).decode("utf-8", errors="replace")


def test_a_character_cut_in_two_is_put_together(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    seen: list[str] = []
    follower = OutputFollower(path, seen.append)
    whole = "1 ä 2".encode()

    for part in (whole[:3], whole[3:]):
        with path.open("ab") as file:
            file.write(part)
        follower.pass_on()
    follower.close()

    assert "".join(seen) == "1 ä 2"


def test_tail_says_how_much_it_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(f"line {number}" for number in range(10)) + "\n")

    assert tail(path, lines=2).splitlines() == [
        "[… 56 bytes before this are left out]",
        "line 8",
        "line 9",
    ]
    assert tail(path, size=8).splitlines()[-1] == "line 9"
    assert tail(path).splitlines() == [f"line {number}" for number in range(10)]


def test_tail_of_a_progress_bar_is_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"start\n  1%\r 50%\r100%\r\nend\r\n")

    assert tail(path) == "start\n100%\nend"


def test_tail_of_nothing(tmp_path: Path) -> None:
    assert tail(tmp_path / "missing") == ""
    (tmp_path / "empty").touch()
    assert tail(tmp_path / "empty") == ""
