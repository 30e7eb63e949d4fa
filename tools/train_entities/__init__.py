"""Fine-tunes a GLiNER checkpoint on a team's own labels; `hopline train-entities` runs it.

In an installed Hopline this folder is the package `hopline_training`, hence the relative imports. Only training.py
and export.py need the extra `gpu`.
"""
