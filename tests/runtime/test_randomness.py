"""Random numbers for message ids."""

from lasthop.runtime.randomness import PAGE, Randomness


def test_numbers_have_64_bits_and_do_not_repeat_across_pages() -> None:
    numbers = [n for _, n in zip(range(PAGE), iter(Randomness(), None), strict=False)]
    assert len(set(numbers)) == len(numbers) == PAGE
    assert all(0 <= n < 1 << 64 for n in numbers)
    assert any(n >> 63 for n in numbers)
