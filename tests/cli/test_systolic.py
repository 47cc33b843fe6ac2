"""`weft systolic` as a user types it: what it refuses, and what its counts mean."""
import json

from conftest import weft


def test_sizes():
    for size, words in [("99999999999999999999", "at most 2^50"), ("-1", "must be positive"), ("0", "at least 1"), ("x", "at least 1"), ("", "at least 1")]:
        p = weft("systolic", size, 1, 1)
        assert p.returncode == 2 and words in p.stderr and p.stdout == "", (size, p.stderr)
    assert weft("systolic", 1 << 52, 1, 1).returncode == 1


def test_fill_steady_drain():
    """Tiles of 44 rows or columns end the product; they are steady state, and drain is one tile's."""
    d = json.loads(weft("systolic", 300, 300, 300, "--json").stdout)
    assert (d["fill"], d["drain"]) == (128 + 2 * 127, 2 * 127) and d["fill"] + d["steady"] + d["drain"] == d["cycles"]
    shown = weft("systolic", 300, 300, 300).stdout
    assert " us, " in shown or " ms, " in shown
    for line in ("until the first tile has all its elements at work", "until the last tile begins to run empty"):
        assert line in shown


def test_check_says_that_it_takes_long():
    small = weft("systolic", 50, 50, 50, "--check")
    assert small.returncode == 0 and small.stderr == ""
    large = weft("systolic", 700, 700, 700, "--check")
    assert large.returncode == 0 and "takes a while" in large.stderr
