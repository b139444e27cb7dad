"""Which mutants are tried: drawn at random, the same ones for the same seed and sources."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.mutants import python_source, text_source
from tests.mutants.mutant import Mutant

# There are as many texts as everything else together, most of them in tables.
OF_TEXTS = 0.2


def of_file(path: str, text: str) -> list[Mutant]:
    """All mutants of a file, by its kind."""
    return list((python_source if path.endswith(".py") else text_source).mutants(path, text))


def sound(mutant: Mutant, original: str) -> bool:
    """Whether it can be read as the original can, and is another text."""
    text = mutant.apply(original)
    if text == original:
        return False
    if mutant.path.endswith(".py"):
        return python_source.sound(text)
    return text_source.sound(mutant.path, text, original)


def _order(mutants: Iterable[Mutant], chance: random.Random) -> list[Mutant]:
    """At random, where a mutant that empties a text comes as early as its weight says (Efraimidis and Spirakis)."""
    weighted = [
        (chance.random() ** (1 / (OF_TEXTS if mutant.what.endswith("became empty") else 1)), number, mutant)
        for number, mutant in enumerate(mutants)
    ]
    return [mutant for _weight, _number, mutant in sorted(weighted, key=lambda one: one[:2], reverse=True)]


def drawn(root: Path, paths: Iterable[str], seed: str) -> Iterator[Mutant]:
    """The mutants of files in the order in which they are tried; each can be read."""
    texts = {path: (root / path).read_text(encoding="utf-8") for path in sorted(paths)}
    every = [mutant for path, text in texts.items() for mutant in of_file(path, text)]
    for mutant in _order(every, random.Random(seed)):  # noqa: S311 - nothing secret
        if sound(mutant, texts[mutant.path]):
            yield mutant
