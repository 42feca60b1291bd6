"""``python -m secondorder``: the command line."""

from secondorder.cli import main

main()
