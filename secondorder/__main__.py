"""``python -m secondorder``, and the entry of the installed command."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded ends it as quietly as later."""
    try:
        from secondorder.cli import main as run
    except KeyboardInterrupt:
        print("secondorder: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
