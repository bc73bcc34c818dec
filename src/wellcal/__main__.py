"""``python -m wellcal``, and the command ``wellcal``."""

from wellcal._arrays.commands import run_module


def main() -> None:
    """Run the command line."""
    run_module("wellcal.cli")


if __name__ == "__main__":
    main()
