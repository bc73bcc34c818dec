"""``python -m wellcal``: the command line."""

from wellcal.cli import main

if __name__ == "__main__":
    main()
