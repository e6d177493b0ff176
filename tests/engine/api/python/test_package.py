"""The package as a whole: its version, and what readers of types see."""

import pathlib
import re

import rankine


def test_the_version_is_the_librarys():
    assert re.fullmatch(r"\d+\.\d+\.\d+", rankine.version()) and rankine.__version__ == rankine.version()


def test_types_can_be_read():
    assert (pathlib.Path(rankine.__file__).parent / "py.typed").exists()
    for name in rankine.__all__:
        assert getattr(rankine, name).__doc__, name
    for member in (rankine.Member, rankine.Team, rankine.Communicator, rankine.Operation):
        for name, value in vars(member).items():
            if callable(value) and not name.startswith("_"):
                assert value.__doc__ and "return" in value.__annotations__, name
