"""The browser that pages are looked at with: where it is, and how it comes onto the machine.

`python tests/browser/chromium.py` installs it where that is allowed, and else ends with the line to run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")
MISSING = (
    "The tests of pages need a browser, and there is no Chromium on this machine. Run\n\n"
    "    sudo apt-get update && sudo apt-get install --yes chromium\n\n"
    "or give the address of one that is there: CHROMIUM=/path/to/chromium make test-browser"
)


def executable() -> str | None:
    """Where Chromium is: as CHROMIUM says, else one of the usual names."""
    given = os.environ.get("CHROMIUM")
    if given:
        return shutil.which(given)
    return next(filter(None, map(shutil.which, NAMES)), None)


def permitted() -> list[str] | None:
    """What to put before a command of the administrator's; None where we may not run one."""
    if not hasattr(os, "geteuid") or shutil.which(INSTALL[0]) is None:
        return None
    if os.geteuid() == 0:
        return []
    may = shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    return ["sudo", "-n"] if may else None


def main() -> int:
    """Make sure that there is a browser; 1 where there is none and we may not install it."""
    if executable() is None and not os.environ.get("CHROMIUM"):
        before = permitted()
        if before is not None:
            print("installing Chromium from the system's packages", flush=True)
            updated = subprocess.run([*before, INSTALL[0], "update", "--quiet"])
            if updated.returncode == 0:
                subprocess.run([*before, *INSTALL])
    if executable() is None:
        print(MISSING, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
