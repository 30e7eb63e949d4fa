"""Only what pyproject.toml can't say: `models/` and `deploy/engines/` travel in the wheel as packages."""

from setuptools import find_packages, setup

CODE = ("hopline", "indexers", "search_api", "streams")
#: Name in the wheel → folder of the repository.
DATA = {"hopline_models": "models", "hopline_engines": "deploy/engines"}

setup(
    packages=[*find_packages(include=[p for name in CODE for p in (name, f"{name}.*")]), *DATA],
    package_dir=DATA,
    package_data={name: ["*/*"] for name in DATA},
)
