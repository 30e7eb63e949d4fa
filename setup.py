"""Only what pyproject.toml can't say: some folders travel in the wheel as packages of other names."""

from pathlib import Path

from setuptools import find_packages, setup

CODE = ("hopline", "indexers", "search_api", "streams")
#: Name in the wheel → folder of the repository.
DATA = {
    "hopline_models": "models",
    "hopline_engines": "deploy/engines",
    "hopline_examples": "examples/vault",
}
#: The same for code: what `hopline train-entities` runs.
TOOLS = {"hopline_training": "tools/train_entities"}
#: The files of the web page.
PAGE = ("search_api.web.static", "search_api.web.static.views", "search_api.web.static.vendor")
#: A folder with an importable name counts as a package, and must be named as one.
BELOW = {
    f"{name}.{folder.name}"
    for name, root in DATA.items()
    for folder in sorted(Path(root).iterdir())
    if folder.is_dir() and folder.name.isidentifier()
}

setup(
    packages=[
        *find_packages(include=[p for name in CODE for p in (name, f"{name}.*")]),
        *DATA,
        *TOOLS,
        *sorted(BELOW),
        *PAGE,
    ],
    package_dir=DATA | TOOLS,
    package_data={name: ["*", "*/*"] for name in DATA}
    | {name: ["*"] for name in BELOW}
    | {name: ["*"] for name in PAGE}
    | {"search_api.web": ["*.json"]},
)
