"""Commands end with a status and a sentence, not with a traceback, where the fault is not theirs."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from wellcal.__main__ import run_command, sentence
from wellcal.cli.screen import ending_well
from wellcal.reading import ReadError, read_table

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "wellcal",
    "wellcal.demo",
    "reproduction",
    "reproduction.compute",
    "benchmarks",
    "benchmarks.bank",
    "benchmarks.planted_errors",
    "benchmarks.regression",
    "fuzz",
]
"""Everything that is run with ``python -m``."""

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")


def started(*arguments: str, path: Path | None = None, **options: object) -> subprocess.CompletedProcess[str]:
    """A command at its end; `path` is searched for modules first."""
    found = ENVIRONMENT.get("PYTHONPATH")
    search = os.pathsep.join(str(part) for part in (path, found) if part)
    given = {"stdout": subprocess.PIPE, "cwd": ROOT, **options}
    environment = {**ENVIRONMENT, "PYTHONPATH": search}
    return subprocess.run(
        [sys.executable, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
        **given,  # type: ignore[call-overload]
    )


def test_all_commands_are_here() -> None:
    """A module of the repository that is run calls its ``main`` through `run_module`."""
    roots = [ROOT / "src" / "wellcal", *(ROOT / name for name in ("reproduction", "benchmarks", "fuzz"))]
    ends = {
        ".".join(path.relative_to(ROOT / "src" if "src" in path.parts else ROOT).with_suffix("").parts)
        for root in roots
        for path in root.rglob("*.py")
        if 'if __name__ == "__main__":' in path.read_text() and "tests" not in path.parts
    }
    known = {name.removesuffix(".__main__") for name in ends} - {
        "benchmarks.peak"
    }  # a process of a benchmark
    assert known == set(COMMANDS)


# Planting errors needs no large library before it runs the whole suite.
@pytest.mark.parametrize("module", [name for name in COMMANDS if name != "benchmarks.planted_errors"])
def test_an_interruption_while_it_starts(module: str, tmp_path: Path) -> None:
    """It comes from within, while the first large library is imported: no signal has to hit the moment."""
    for library in ("numpy", "typer"):
        (tmp_path / f"{library}.py").write_text("raise KeyboardInterrupt")
    done = started("-m", module, path=tmp_path)
    assert done.returncode == 130
    assert done.stderr == "Stopped.\n"


SHIM = """
import sys


class Once:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas._libs.tslibs.conversion":
            sys.meta_path.remove(self)
            raise KeyboardInterrupt


sys.meta_path.insert(0, Once())
"""


def test_an_interruption_while_a_library_imports_another(tmp_path: Path) -> None:
    """pyarrow imports pandas when it first makes arrays, and takes an interruption for its absence."""
    (tmp_path / "sitecustomize.py").write_text(SHIM)
    (tmp_path / "p.csv").write_text("y,mu,sigma\n" + "0.3,0.0,1.0\n0.1,0.2,1.0\n" * 5)
    done = started("-m", "wellcal", "scores", str(tmp_path / "p.csv"), path=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (130, "Stopped.\n", "")


def test_an_interruption_that_became_an_error_of_the_input_is_one() -> None:
    def refused() -> None:
        with ending_well("test"):
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                raise ValueError("not a valid buffer format string") from error

    with pytest.raises(KeyboardInterrupt):
        refused()


def test_help_of_the_demonstration_writes_no_reports(tmp_path: Path) -> None:
    done = started("-m", "wellcal.demo", "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wellcal demo --out" in done.stdout
    assert started("-m", "wellcal.demo", "reports", cwd=tmp_path).returncode == 2
    assert not list(tmp_path.iterdir())


@full_disk
@pytest.mark.parametrize("module", ["wellcal", "reproduction"])
def test_output_that_is_full(module: str) -> None:
    with open("/dev/full", "w") as full:
        done = started("-m", module, "--help", stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("standard output: No space left on device; free some space")
    assert done.stderr.count("\n") == 1


def test_output_and_input_that_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in ``... >&-``: there is nothing to write to, and status 1 would be a rejection."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit) as end:
        run_command(lambda: print(sys.stdout.isatty(), file=sys.stderr))
    assert end.value.code is None
    for name in ("stdout", "stderr"):
        getattr(sys, name).close()
    with pytest.raises(ReadError, match="standard input: it is closed"):
        read_table("-")


@pytest.mark.parametrize("encoding", ["ascii", "cp932", "utf-8"])
def test_output_in_an_encoding_of_few_signs(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports have signs, such as the dot here, that some do not have."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    with pytest.raises(SystemExit) as end:
        run_command(lambda: print("200 cases \N{MIDDLE DOT} numbers"))
    assert end.value.code is None
    dot = "\N{MIDDLE DOT}" if encoding == "utf-8" else r"\xb7"
    assert written.getvalue().decode(encoding).strip() == f"200 cases {dot} numbers"


@full_disk
def test_what_is_full_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> None:
        print("It does not fit.")
        sys.exit(2)  # after a sentence of its own

    with open("/dev/full", "w") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as end:
            run_command(told)
    assert end.value.code == 2
    assert not capsys.readouterr().err


def test_nobody_reads_the_output() -> None:
    """As in ``... | head -0``: nothing is said about it."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        code = "from wellcal.__main__ import run_command; run_command(lambda: print('first line'))"
        done = started("-c", code, stdout=closed)
        commands = [started("-m", "wellcal", *given, stdout=closed) for given in (["--help"], ["test", "-h"])]
    assert [end.returncode for end in (done, *commands)] == [141] * 3  # 1 would be a rejection
    assert not any(end.stderr for end in (done, *commands))


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "below"
    done = started("-m", "reproduction", "ols", "--quick", "--out", str(out), "--workers", "1")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{out}")
    assert "Not a directory; write somewhere else" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_installed_command_starts_in_the_same_way() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"wellcal": "wellcal.__main__:main"}


# -- how they end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, 0, 1, 2])
def test_the_status_is_handed_on(status: int | None) -> None:
    with pytest.raises(SystemExit) as end:
        run_command(lambda: status)
    assert end.value.code == status

    def leaves() -> None:
        sys.exit(status)

    with pytest.raises(SystemExit) as end:
        run_command(leaves)
    assert end.value.code == status


def test_faults_of_the_program_are_shown() -> None:
    with pytest.raises(ZeroDivisionError):
        run_command(lambda: 1 // 0)


def test_an_interruption_that_an_import_made_another_error_of_is_one() -> None:
    def imports() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error

    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as end:
            run_command(imports)
    finally:
        signal.signal(signal.SIGINT, before)
    assert end.value.code == 130


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "change its permissions"),
        (errno.EROFS, "write somewhere else"),
    ],
)
def test_sentences_have_a_remedy(code: int, remedy: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = OSError(code, os.strerror(code), "results.jsonl")
    assert sentence(error).startswith(f"results.jsonl: {os.strerror(code)}; {remedy}")

    def fails() -> None:
        raise error

    with pytest.raises(SystemExit) as end:
        run_command(fails)
    assert end.value.code == 2
    assert capsys.readouterr().err == sentence(error) + "\n"
