"""The package as a whole: its version, its types and its documentation."""

import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest
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


@pytest.mark.parametrize("made", [rankine.Communicator, rankine.Team])
def test_every_option_is_described(made):
    for name, parameter in inspect.signature(made).parameters.items():
        assert parameter.kind is not parameter.VAR_KEYWORD
        if name != "ranks":
            assert f"``{name}``" in made.__doc__, name


@pytest.mark.parametrize(
    "package, program, purpose",
    [
        ("numpy", "rankine.Operation(lambda a, b: b, 'f4')", "rankine.Operation or rankine.FunctionEpilogue"),
        ("torch", "import rankine.torch", "rankine.torch, a backend of torch.distributed"),
        ("torch", "import rankine.device_communicator", "rankine.device_communicator"),
        ("ray", "import rankine.ray", "rankine.ray, a backend of ray.util.collective"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_purpose(package, program, purpose):
    """rankine imports without the package; a feature that needs the package names it."""
    hidden = f"""import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == '{package}':
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Hidden())
import rankine
"""
    paths = [str(pathlib.Path(rankine.__file__).parents[1]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    ended = subprocess.run([sys.executable, "-c", hidden + program], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: the package {package} is not installed for "), last
    assert purpose in last and last.endswith("needs it"), last
