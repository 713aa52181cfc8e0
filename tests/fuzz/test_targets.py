"""Every target understands its seeds, and withstands what becomes of them when bytes change; and
what fuzzers have found worth keeping in the corpus beside this file."""

from pathlib import Path
from random import Random

import pytest

from tests.fuzz.guided import corpus, mutated
from tests.fuzz.targets import TARGETS, check

CORPUS = Path(__file__).with_name("corpus")


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_works(name: str) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())
    understood = [seed for seed in seeds if check(target, seed)]
    assert understood
    random = Random(name)
    for _ in range(150):
        check(target, mutated(random, understood))


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_before_is_withstood_again(name: str) -> None:
    for data in corpus(CORPUS / name):
        check(TARGETS[name], data)


def test_the_corpus_is_small_and_of_targets_that_exist() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 200_000
