"""Only what pyproject.toml can't say: `models/` travels in the wheel as the package `hopline_models`."""

from setuptools import find_packages, setup

CODE = ("hopline", "indexers", "search_api", "streams")

setup(
    packages=[*find_packages(include=[p for name in CODE for p in (name, f"{name}.*")]), "hopline_models"],
    package_dir={"hopline_models": "models"},
    package_data={"hopline_models": ["*/*"]},
)
