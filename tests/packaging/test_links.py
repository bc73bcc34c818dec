"""Addresses of other sites are well formed, each in one spelling. `make linkcheck` asks the sites."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
READ = ("*.md", "docs", "examples", "benchmarks", "reproduction", "src", "CITATION.cff", "pyproject.toml")
ENDINGS = {".md", ".py", ".cff", ".toml", ".html", ".jinja", ".css", ".js"}
BUILT = {"_build", "gallery", "generated"}

ADDRESS = re.compile(r"\bhttps?:/*[^\s\"'<>`{}\\|]*", re.IGNORECASE)
HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
PATH = re.compile(r"[\w.~/:@!$&()*+,;=%-]*")
DOI = re.compile(r"/10\.\d{4,9}/[\w.()/:;<>-]+[\w)]")
ARXIV = re.compile(r"/abs/(?:\d{4}\.\d{4,5}|[a-z-]+/\d{7})")
SPACES = ("http://www.w3.org/", "http://purl.org/", "http://creativecommons.org/ns")
"""Names of XML, which are no addresses."""


def addresses(text: str) -> list[str]:
    """Addresses in a text, without the marks of the sentence or the link that they stand in."""
    found: list[str] = []
    for match in ADDRESS.finditer(text):
        address = match[0].rstrip(".,;:!?*]")
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(".,;:!?*]")
        if not address.startswith(SPACES):
            found.append(address)
    return found


def complaint(address: str) -> str | None:
    """What is wrong with an address; None if nothing is."""
    parts = urlsplit(address)
    if parts.scheme != "https":
        return "not https"
    if not HOST.fullmatch(parts.netloc):
        return "no name of a host in lower case"
    if not PATH.fullmatch(parts.path) or "//" in parts.path:
        return "a path that is none"
    if re.search(r"10\.\d{4,9}/", address) and parts.netloc != "doi.org":
        return "a DOI that is not at https://doi.org/"
    if parts.netloc == "doi.org" and not DOI.fullmatch(parts.path):
        return "not the form of a DOI"
    if parts.netloc.endswith("arxiv.org") and not (
        parts.netloc == "arxiv.org" and ARXIV.fullmatch(parts.path)
    ):
        return "not the page of an abstract, https://arxiv.org/abs/2210.13355"
    return None


def place(address: str) -> str:
    """What two spellings of one place have in common."""
    parts = urlsplit(address.lower())
    path = parts.path.removesuffix("index.html").rstrip("/").removesuffix(".git")
    return parts.netloc.removeprefix("www.") + path


def written() -> dict[str, list[str]]:
    """Addresses in what people write and read, each with the files that it is in."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pattern in READ:
        for top in sorted(ROOT.glob(pattern)):
            for path in [top] if top.is_file() else sorted(top.rglob("*")):
                inside = path.relative_to(ROOT)
                own = not BUILT.intersection(inside.parts) or inside.parts[0] == "examples"
                if path.suffix in ENDINGS and own and path.is_file():
                    for address in addresses(path.read_text(encoding="utf-8")):
                        found[address].append(inside.as_posix())
    return dict(found)


def test_addresses_are_well_formed() -> None:
    found = written()
    assert len(found) > 12, "the scan must find the links"
    assert not {address: (why, found[address]) for address in found if (why := complaint(address))}


def test_one_place_has_one_spelling() -> None:
    found = written()
    spellings: defaultdict[str, set[str]] = defaultdict(set)
    for address in found:
        spellings[place(address)].add(address)
    assert not [sorted(several) for several in spellings.values() if len(several) > 1]


def test_references_in_words_have_the_usual_form() -> None:
    """Such as arXiv:2210.13355, where they are written without an address."""
    usual = re.compile(r"arXiv:\d{4}\.\d{4,5}|doi:10\.\d{4,9}/\S+")
    found: dict[str, str] = {}
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]:
        if not BUILT.intersection(path.relative_to(ROOT).parts):
            for match in re.finditer(
                r"\b(?:arxiv|doi)[\s:]+\d[\w./-]*", path.read_text(encoding="utf-8"), re.I
            ):
                found[match[0].rstrip(".")] = path.name
    assert found, "the scan must find the paper"
    assert not {reference: page for reference, page in found.items() if not usual.fullmatch(reference)}


@pytest.mark.parametrize(
    "address",
    [
        "http://scikit-learn.org/stable/",
        "https:/arxiv.org/abs/2210.13355",
        "https://Arxiv.org/abs/2210.13355",
        "https://arxiv.org/pdf/2210.13355",
        "https://arxiv.org/abs/2210.13355v2",
        "https://www.arxiv.org/abs/2210.13355",
        "https://dx.doi.org/10.1073/pnas.2016191118",
        "https://doi.org/pnas.2016191118",
        "https://publisher.com/doi/10.1073/pnas.2016191118",
        "https://localhost/page",
        "https://github.com//apple/ml-calibration",
        "https://example.org/[page",
    ],
)
def test_wrong_addresses_are_found(address: str) -> None:
    assert complaint(address)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://python.arviz.org", "https://python.arviz.org/"),
        ("https://github.com/Apple/ml-calibration", "https://github.com/apple/ml-calibration.git"),
        ("https://www.python.org/index.html", "https://python.org/"),
    ],
)
def test_two_spellings_are_found(one: str, other: str) -> None:
    assert place(one) == place(other)


def test_marks_of_sentences_are_no_part_of_an_address() -> None:
    text = (
        "See [it](https://doi.org/10.1000/182), (https://a.org/b_(c)). <https://a.org/d> `https://a.org/e`;"
    )
    assert addresses(text) == [
        "https://doi.org/10.1000/182",
        "https://a.org/b_(c)",
        "https://a.org/d",
        "https://a.org/e",
    ]
    assert complaint("https://doi.org/10.1000/182") is None
