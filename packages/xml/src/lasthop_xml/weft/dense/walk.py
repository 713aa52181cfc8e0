"""The walk through one document, choice by choice.

The same code walks when encoding and when decoding. A method that codes a value returns that value;
its argument is the value when encoding, and is ignored when decoding.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import gcd
from typing import Any, Final

from lasthop_xml.weft.dense.letters import Letters
from lasthop_xml.weft.dense.models import (
    Coder,
    ColumnModel,
    Counts,
    choose,
    code_number,
    code_tree,
    learn,
)
from lasthop_xml.weft.engine.columns import Column, Entry, Link
from lasthop_xml.weft.engine.forms import (
    FRACTION_POWERS,
    LONGEST_SPLIT,
    MAX_WORDS,
    MOST_WORDS,
    fraction_digits,
    is_digits,
    seconds_of,
)
from lasthop_xml.weft.engine.memory import Memory
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError
from lasthop_xml.weft.exact import LARGEST, Lexical, exact
from lasthop_xml.weft.learned import Learned, Models
from lasthop_xml.weft.runs import (
    BOOLEAN,
    BYTES,
    FRACTION,
    LEXICAL,
    NAME,
    TEXT,
    TIME,
    Run,
    RunSequence,
)
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import check_text, is_ncname
from lasthop_xml.xas.types.table import PRIMITIVES, lexical

STEPS_PER_BYTE: Final = 512
"""The largest number of values per byte of a message, so that a short message is little work."""
MOST_LETTERS: Final = 2048
"""The largest number of bytes of a message that are coded bit by bit, at about 30 µs each; more are
only compressed. The first message of a connection has some hundreds."""

OMITTED: Final = 64
"""The number of bytes by which a message may be shorter than its compressed texts, since zeros at
the end of a message are not sent; a compressed text ends in fewer zeros than this."""

# Keys of the choices that columns make; a choice that depends on a confidence has 16 keys.
_GUESSED, _GUESSED_BEFORE, _FOLLOWED, _KNOWN_RUN = 1, 2, 3, 4
_KNOWN, _SCALED, _AS_TEXT, _SAME_SCALE, _DECIMAL, _NEGATIVE = 5, 8, 9, 10, 11, 12
_KNOWN_WORD, _IS_DIGITS, _RAW = 13, 14, 15
_BY_KEY, _BY_WORD, _BY_PLACE = 16, 32, 48
_HEAVY, _LIGHT = 6, 2
_MOST_BY_KEY, _MOST = 400, 8192

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Walker:
    """Encodes or decodes one document at level max."""

    __slots__ = ("_bytes", "_coder", "_learned", "_letters_left", "_memory", "_models", "_room")

    def __init__(self, learned: Learned, coder: Coder, limits: Limits) -> None:
        self._learned = learned
        self._memory: Memory = learned.memory
        self._models: Models = learned.models
        self._coder = coder
        self._letters_left = MOST_LETTERS
        self._room = limits.size
        self._bytes = 0
        """The number of bytes of the message that is being decoded."""

    def write(self, document: RunSequence) -> int:
        """Encode a document; return the least number of bytes that its message must have."""
        count = len(document.values)
        code_number(self._coder, self._models.counts, count)
        self._walk(count, document.runs, document.values, [], [])
        return count // STEPS_PER_BYTE

    def read(self, size: int, most: int) -> RunSequence:
        """Decode a document from a message of `size` bytes."""
        count = code_number(self._coder, self._models.counts, 0)
        if count > most:
            raise WeftLimitError("a message has too many events", most=most)
        self._bytes = size
        if count // STEPS_PER_BYTE > size:
            raise WeftFormatError("a message is too short for its values")
        runs: list[Run] = []
        values: list[Any] = []
        self._walk(count, [], [], runs, values)
        return RunSequence(runs, values)

    def _walk(
        self,
        count: int,
        runs: Sequence[Run],
        values: Sequence[Any],
        runs_out: list[Run],
        values_out: list[Any],
    ) -> None:
        encoding = self._coder.encoding
        self._memory.message += 1
        before = entry = self._memory.start.other
        for at in range(count + 1):
            link = self._link(before, entry, runs[at] if encoding else None)
            run, column = link.run, link.column
            if run is None or (column.shape == 0) != (at == count):
                raise WeftFormatError("a message does not end where its document does")
            runs_out.append(run)
            if at < count:
                before, (entry, value) = (
                    entry,
                    self._value(entry, column, values[at] if encoding else None),
                )
                values_out.append(value)

    def _choose(self, model: ColumnModel, key: int, choice: int) -> int:
        """Code a choice of a column; a column's first one starts from the choices of all
        columns."""
        common = self._models.common
        own = model.bits.get(key)
        shared = common.get(key)
        if shared is None:
            shared = common[key] = [32768, 0]
        if own is None:
            own = model.bits[key] = [shared[0], min(shared[1], 1)]
        choice = self._coder.bit(own[0], choice)
        learn(own, choice)
        learn(shared, choice)
        return choice

    def _link(self, before: Entry, entry: Entry, run: Run | None) -> Link:
        model = _model_of(entry.column)
        guessed = entry.link
        if guessed.run is not None:
            key = _GUESSED_BEFORE if entry.linked else _GUESSED
            if self._choose(model, key, guessed.run is run):
                return guessed
        memory, coder = self._memory, self._coder
        after = model.after
        index = memory.runs.get(run, -1) if run is not None else -1
        if after.places and self._choose(model, _FOLLOWED, index in after.places):
            index = after.code(coder, index)
        elif memory.run_list and self._choose(model, _KNOWN_RUN, index >= 0):
            index = coder.one_of([1] * len(memory.run_list), len(memory.run_list), index)
        else:
            run = self._new_run(entry.column, run)
            index = len(memory.run_list)
            memory.add_run(run)
        after.add(index, _LIGHT, _MOST)
        return memory.follow(before.column, entry, memory.run_list[index])

    def _new_run(self, column: Column, run: Run | None) -> Run:
        letters = self._models.runs
        if run is not None:
            self._octets(letters, self._learned.writer.run_octets(run))
            return run
        found: Run = self._learned.reader.run_in(self._octets(letters, b""), column)
        if found in self._memory.runs:
            raise WeftFormatError("a run is written twice")
        return found

    def _octets(self, letters: Letters, data: bytes) -> bytes:
        """Code any bytes: letter by letter, or compressed when that would take too long."""
        coder = self._coder
        if not choose(coder, self._models.common, _RAW, len(data) > self._letters_left):
            size = code_number(coder, self._models.sizes, len(data))
            self._spend(size)
            return letters.octets(coder, data, size)
        packed = zlib.compress(data, 9) if coder.encoding else b""
        size = code_number(coder, self._models.sizes, len(packed))
        if size > self._room:
            raise WeftLimitError("a message expands to too much text", most=self._room)
        if not coder.encoding and size > self._bytes + OMITTED:
            # Compressed texts are as long in the message; without this a few bytes could ask for a
            # million.
            raise WeftFormatError("a message is too short for its texts")
        packed = bytes(coder.bits(8, packed[at] if coder.encoding else 0) for at in range(size))
        if coder.encoding:
            return data
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(packed, self._room)
        except zlib.error:
            raise WeftFormatError("a compressed text is damaged") from None
        if not unpacker.eof and len(data) == self._room:
            raise WeftLimitError("a message expands to too much text", most=self._room)
        if not unpacker.eof or unpacker.unused_data:
            raise WeftFormatError("a compressed text is damaged")
        self._room -= len(data)
        return data

    def _spend(self, size: int) -> None:
        self._letters_left -= size
        if self._letters_left < 0:
            raise WeftFormatError("a message has too many letters")

    def _value(self, entry: Entry, column: Column, value: Any) -> tuple[Entry, Any]:
        coder, memory = self._coder, self._memory
        model = _model_of(column)
        key = column.parent.current
        guess = column.guess.get(key) or column.last
        known = column.tokens.get(value) if coder.encoding else None
        index = 0 if known is None or known.index not in model.all.places else known.index
        keyed = model.by_key.get(key)
        if keyed is None:
            keyed = model.by_key[key] = Counts()
        found = False
        if keyed.places:
            found = bool(self._choose(model, _BY_KEY + keyed.confidence(), index in keyed.places))
        if found:
            index = keyed.code(coder, index)
        elif len(model.all.places) > len(keyed.places) and self._choose(
            model, _KNOWN + min(len(model.all.places), 3) - 1, index > 0
        ):
            index = model.all.code(coder, index, without=keyed)
        else:
            index = 0
        if index:
            known = column.entries[index]
            value = known.value
            if guess is not known:
                column.credit += 2
                column.guess[key] = known
                column.last = known
            column.current = index
        else:
            value, size = self._new(column, model, value)
            if column.credit > 0:
                known = memory.keep(entry.column, column, value, size)
                if coder.encoding and known.index:
                    column.tokens[value] = known
                index = known.index
            else:
                column.current = 0
                known = column.other
        if index:
            # A column that was full has started again, and so has its model.
            model = _model_of(column)
            keyed = model.by_key.setdefault(key, Counts())
            keyed.add(index, _HEAVY, _MOST_BY_KEY)
            model.all.add(index, _LIGHT, _MOST)
        return known, value

    def _new(self, column: Column, model: ColumnModel, value: Any) -> tuple[Any, int]:
        """Code a value that is new in its column; return it and its size."""
        shape = column.shape
        if shape in {TEXT, NAME}:
            text = self._text(column, model, value or "")
            if shape == NAME and not is_ncname(text.partition(" ")[0]):
                raise WeftFormatError("a name is malformed")
            return text, len(text)
        if shape == BYTES:
            data = self._octets(self._models.letters, value or b"")
            return data, len(data)
        if shape != LEXICAL and not self._choose(
            model,
            _AS_TEXT,
            type(value) is Lexical or (type(value) is datetime and value.microsecond != 0),
        ):
            if shape == FRACTION:
                return exact(column.type, self._fraction(column, model, value)), 8
            return self._number(column, model, value), 8
        text = ""
        if self._coder.encoding:
            text = value if type(value) is Lexical else lexical(column.type, value)
        text = self._text(column, model, text)
        if not self._coder.encoding:
            value = PRIMITIVES[column.type].exactly(text)
            if value is None:
                raise WeftFormatError("a value is not in its canonical form")
            value = exact(column.type, value)
        return value, len(text)

    def _number(self, column: Column, model: ColumnModel, value: Any) -> Any:
        shape = column.shape
        number = 0
        if self._coder.encoding:
            number = seconds_of(value) if shape == TIME else int(value)
        number = self._step(column, model, number)
        if shape == TIME:
            return _EPOCH + timedelta(0, number)
        if not column.lowest <= number <= column.highest:
            raise WeftFormatError("a number is out of range")
        return number == 1 if shape == BOOLEAN else number

    def _step(self, column: Column, model: ColumnModel, number: int) -> int:
        """Code a number as its difference to the one before, in units of the column's scale."""
        base, scale = column.base.number, column.scale
        step = number - base
        scaled = scale > 0 and self._choose(model, _SCALED, step % scale == 0)
        unit = scale if scaled else 1
        step = step // unit
        zigzag = code_number(self._coder, model.steps, step << 1 if step >= 0 else (-step << 1) - 1)
        step = (zigzag >> 1 if zigzag & 1 == 0 else -(zigzag >> 1) - 1) * unit
        if not scaled:
            column.scale = gcd(scale, step)
        number = base + step
        if not -LARGEST < number < LARGEST:
            raise WeftFormatError("a number is out of range")
        column.base.number = number
        return number

    def _fraction(self, column: Column, model: ColumnModel, value: Any) -> float:
        coder = self._coder
        size: float = abs(value) if coder.encoding else 0.0
        negative = self._choose(model, _NEGATIVE, coder.encoding and value < 0)
        scale = column.scale
        digits = fraction_digits(size, scale)
        if not self._choose(model, _SAME_SCALE, digits >= 0):
            for scale in range(16):
                digits = fraction_digits(size, scale)
                if digits >= 0:
                    break
            if not self._choose(model, _DECIMAL, digits >= 0):
                (bits,) = struct.unpack(">Q", struct.pack(">d", size))
                size = struct.unpack(">d", struct.pack(">Q", coder.bits(64, bits)))[0]
                return -size if negative else size
            scale = code_tree(coder, model.digits, 4, scale)
            column.scale = scale
        step = digits - column.base.number
        zigzag = code_number(coder, model.steps, step << 1 if step >= 0 else (-step << 1) - 1)
        digits = column.base.number + (zigzag >> 1 if zigzag & 1 == 0 else -(zigzag >> 1) - 1)
        if not 0 <= digits <= 2**53:
            raise WeftFormatError("a fraction has an unknown form")
        column.base.number = digits
        size = digits / FRACTION_POWERS[scale]
        return -size if negative else size

    def _text(self, column: Column, model: ColumnModel, text: str) -> str:
        """Code a text as known and new words, or as bytes if it is too long for that."""
        coder = self._coder
        words = text.split(" ") if coder.encoding else []
        fits = len(words) <= MOST_WORDS and len(text) <= LONGEST_SPLIT
        fits = fits and 4 * len(text) <= self._letters_left
        count = code_tree(coder, model.digits, 5, len(words) if fits else 0)
        if count == 0:
            data = self._octets(self._models.letters, text.encode())
            return text if coder.encoding else check_text(data.decode())
        previous = -1
        found: list[str] = []
        for place in range(count):
            word, previous = self._word(
                column, model, previous, place, words[place] if coder.encoding else ""
            )
            found.append(word)
        return " ".join(found)

    def _word(
        self, column: Column, model: ColumnModel, previous: int, place: int, word: str
    ) -> tuple[str, int]:
        coder = self._coder
        index = column.words.get(word, -1) if coder.encoding else -1
        if index not in model.words.places:
            index = -1
        after = model.by_word.get(previous)
        if after is None:
            after = model.by_word[previous] = Counts()
        here = model.by_place.get(place)
        if here is None:
            here = model.by_place[place] = Counts()
        # First the word that always followed the previous one, then words at this place, then any
        # word.
        if len(after.places) == 1 and self._choose(
            model, _BY_WORD + after.confidence(), index in after.places
        ):
            index = after.code(coder, index)
        elif here.places and self._choose(
            model, _BY_PLACE + here.confidence(), index in here.places
        ):
            index = here.code(coder, index)
        elif len(model.words.places) > len(here.places) and self._choose(
            model, _KNOWN_WORD, index >= 0
        ):
            index = model.words.code(coder, index, without=here)
        else:
            word, index = self._new_word(column, model, word)
        if index >= 0:
            after.add(index, _HEAVY, _MOST_BY_KEY)
            here.add(index, _HEAVY, _MOST)
            model.words.add(index, _LIGHT, _MOST)
            if not coder.encoding:
                word = column.word_list[index]
        return word, index

    def _new_word(self, column: Column, model: ColumnModel, word: str) -> tuple[str, int]:
        """Code a word in full; return it and its number, or -1 if it is not kept."""
        coder = self._coder
        if self._choose(model, _IS_DIGITS, is_digits(word)):
            groups = word.split("-")
            count = code_number(coder, model.digits, len(groups))
            if count > LONGEST_SPLIT:
                raise WeftFormatError("a word has too many digits")
            if not coder.encoding:
                groups = [""] * count
            return "-".join([self._digits(model, group) for group in groups]), -1
        data = self._models.letters.text(coder, word.encode(), LONGEST_SPLIT * 4)
        self._spend(len(data))
        if not coder.encoding:
            word = check_text(data.decode())
        known = column.words if coder.encoding else column.word_list
        index = len(known)
        if index >= MAX_WORDS:
            return word, -1
        if coder.encoding:
            column.words[word] = index
        else:
            column.word_list.append(word)
        return word, index

    def _digits(self, model: ColumnModel, digits: str) -> str:
        size = code_number(self._coder, model.digits, len(digits))
        if size > LONGEST_SPLIT:
            raise WeftFormatError("a word has too many digits")
        value = self._coder.bits(4 * size, int(digits or "0", 16))
        return f"{value:0{size}x}" if size else ""


def _model_of(column: Column) -> ColumnModel:
    model: ColumnModel | None = column.model
    if model is None:
        model = column.model = ColumnModel()
    return model
