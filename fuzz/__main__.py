"""``python -m fuzz``: try inputs, and print those that ended as they must not, each with how to repeat it."""

from __future__ import annotations

if __name__ == "__main__":
    from wellcal.__main__ import run_module

    run_module("fuzz.__main__")

import argparse
import resource
import time
import traceback
from collections import Counter

from fuzz.run import SEED, inputs, make_input

MEMORY = 12 * 2**30
"""Bytes of address space that the process may have: an input that needs more has not been refused."""


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="how many (10000)")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed gives other inputs (0)")
    parser.add_argument("--start", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--input", type=int, help="only this one, with its traceback")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    if options.input is not None:
        return repeat(options.input, options.seed)
    began, faults, kinds, endings = time.process_time(), 0, Counter[str](), Counter[str]()
    for item in inputs(options.inputs, options.seed, options.start):
        found = item.run()
        endings[found.text.split(":")[0] or "result"] += 1
        if found.fault:
            faults += 1
            kinds[found.fault] += 1
            print(f"{item.line()}\n    {found.fault}\n    {found.text[:200]}", flush=True)
    spent = time.process_time() - began
    print(f"\n{options.inputs} inputs, {faults} faults, {spent:.0f} s of CPU time; endings: {dict(endings)}")
    for fault, count in kinds.most_common(40):
        print(f"{count:6} {fault}")
    return 1 if faults else 0


def repeat(number: int, seed: int) -> int:
    """One input, with everything that is known of it."""
    item = make_input(number, seed)
    print(item.line())
    for name, value in item.arguments.items():
        print(f"  {name} = {value!r}")
    found = item.run()
    print(found.fault or "ended as it may", found.text, sep="\n")
    try:
        print(item.subject.call(**item.arguments))
    except Exception:
        traceback.print_exc()
    return 1 if found.fault else 0
