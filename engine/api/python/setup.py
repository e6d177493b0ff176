"""The tag of the wheel: third_party/wheel brings an extension module of the stable ABI, which setuptools has not compiled."""

from setuptools import Distribution, setup


class WithModule(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(distclass=WithModule, options={"bdist_wheel": {"py_limited_api": "cp39"}})
