from __future__ import annotations

import json

import pytest
from dflash.config import SIZES, Size, named_size, sizes_here
from dflash.knobs import CHOICES, Knobs, parse_knobs, read_knobs


def test_no_knobs_are_the_good_code() -> None:
    assert parse_knobs("") == Knobs()
    assert read_knobs(SIZES["simulated"], {}) == Knobs()


def test_knobs_are_read_from_the_environment() -> None:
    knobs = read_knobs(SIZES["cpu"], {"DFLASH": " depth=20  post=sync "})
    assert (knobs.depth, knobs.min_ready, knobs.post) == (20, 10, "sync")


def test_an_unknown_knob_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'dept=20'.*depth, min_ready, post.*spin"):
        parse_knobs("dept=20")


@pytest.mark.parametrize("word", ["depth", "post:sync", "=3"])
def test_a_word_without_a_name_and_a_value_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"no knob=value"):
        parse_knobs(word)


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_a_wrong_value_lists_the_right_ones(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='fast'.*{' or '.join(CHOICES[name])}"):
        parse_knobs(f"{name}=fast")


@pytest.mark.parametrize("word", ["depth=0", "depth=-1", "depth=2.5", "depth=", "masks=3"])
def test_a_number_outside_its_range_is_refused(word: str) -> None:
    name = word.split("=", maxsplit=1)[0]
    with pytest.raises(ValueError, match=f"{name}=.*whole number from 1 to"):
        parse_knobs(word)


def test_a_knob_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse_knobs("depth=20 depth=30")


def test_a_shallow_queue_lowers_the_default_low_water_but_not_a_demanded_one() -> None:
    assert parse_knobs("depth=4").min_ready == 4
    with pytest.raises(ValueError, match=r"min_ready=10 is never reached with depth=4"):
        parse_knobs("depth=4 min_ready=10")


@pytest.mark.parametrize("word", ["alloc=churn", "pin=no"])
def test_knobs_of_device_memory_need_a_device(word: str) -> None:
    with pytest.raises(ValueError, match="would change nothing on size 'cpu'"):
        read_knobs(SIZES["cpu"], {"DFLASH": word})
    assert read_knobs(SIZES["simulated"], {"DFLASH": word}) != Knobs()
    assert read_knobs(SIZES["h200"], {"DFLASH": word}) != Knobs()


def test_an_unknown_size_lists_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"'big'.*simulated, cpu, h200, eight"):
        named_size("big")


def test_the_environment_names_the_size() -> None:
    assert [size.name for size in sizes_here({"DFLASH_SIZE": "eight"})] == ["eight"]


@pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))
def test_a_declaration_is_plain_json_and_whole(size: Size) -> None:
    declaration = size.declaration()
    assert json.loads(json.dumps(declaration)) == declaration
    assert declaration["size"] == size.name
    assert declaration["slots"] == size.slots
