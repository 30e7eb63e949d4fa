"""`python -m hopline` is `hopline`."""

from __future__ import annotations

from hopline.start import main

main()
