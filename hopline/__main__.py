"""`python -m hopline` is `hopline`."""

from __future__ import annotations

from hopline.cli.main import main

main()
