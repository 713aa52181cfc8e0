"""The blocks of Unicode that expressions can name with \\p{Is...} (part 2, appendix F)."""

from __future__ import annotations

from typing import Final

_TABLE = """
0000 007F BasicLatin
0080 00FF Latin-1Supplement
0100 017F LatinExtended-A
0180 024F LatinExtended-B
0250 02AF IPAExtensions
02B0 02FF SpacingModifierLetters
0300 036F CombiningDiacriticalMarks
0370 03FF Greek
0370 03FF GreekandCoptic
0400 04FF Cyrillic
0530 058F Armenian
0590 05FF Hebrew
0600 06FF Arabic
0700 074F Syriac
0780 07BF Thaana
0900 097F Devanagari
0980 09FF Bengali
0A00 0A7F Gurmukhi
0A80 0AFF Gujarati
0B00 0B7F Oriya
0B80 0BFF Tamil
0C00 0C7F Telugu
0C80 0CFF Kannada
0D00 0D7F Malayalam
0D80 0DFF Sinhala
0E00 0E7F Thai
0E80 0EFF Lao
0F00 0FFF Tibetan
1000 109F Myanmar
10A0 10FF Georgian
1100 11FF HangulJamo
1200 137F Ethiopic
13A0 13FF Cherokee
1400 167F UnifiedCanadianAboriginalSyllabics
1680 169F Ogham
16A0 16FF Runic
1780 17FF Khmer
1800 18AF Mongolian
1E00 1EFF LatinExtendedAdditional
1F00 1FFF GreekExtended
2000 206F GeneralPunctuation
2070 209F SuperscriptsandSubscripts
20A0 20CF CurrencySymbols
20D0 20FF CombiningMarksforSymbols
20D0 20FF CombiningDiacriticalMarksforSymbols
2100 214F LetterlikeSymbols
2150 218F NumberForms
2190 21FF Arrows
2200 22FF MathematicalOperators
2300 23FF MiscellaneousTechnical
2400 243F ControlPictures
2440 245F OpticalCharacterRecognition
2460 24FF EnclosedAlphanumerics
2500 257F BoxDrawing
2580 259F BlockElements
25A0 25FF GeometricShapes
2600 26FF MiscellaneousSymbols
2700 27BF Dingbats
2800 28FF BraillePatterns
2E80 2EFF CJKRadicalsSupplement
2F00 2FDF KangxiRadicals
2FF0 2FFF IdeographicDescriptionCharacters
3000 303F CJKSymbolsandPunctuation
3040 309F Hiragana
30A0 30FF Katakana
3100 312F Bopomofo
3130 318F HangulCompatibilityJamo
3190 319F Kanbun
31A0 31BF BopomofoExtended
3200 32FF EnclosedCJKLettersandMonths
3300 33FF CJKCompatibility
3400 4DB5 CJKUnifiedIdeographsExtensionA
4E00 9FFF CJKUnifiedIdeographs
A000 A48F YiSyllables
A490 A4CF YiRadicals
AC00 D7A3 HangulSyllables
E000 F8FF PrivateUse
F900 FAFF CJKCompatibilityIdeographs
FB00 FB4F AlphabeticPresentationForms
FB50 FDFF ArabicPresentationForms-A
FE20 FE2F CombiningHalfMarks
FE30 FE4F CJKCompatibilityForms
FE50 FE6F SmallFormVariants
FE70 FEFE ArabicPresentationForms-B
FF00 FFEF HalfwidthandFullwidthForms
10300 1032F OldItalic
10330 1034F Gothic
10400 1044F Deseret
1D000 1D0FF ByzantineMusicalSymbols
1D100 1D1FF MusicalSymbols
1D400 1D7FF MathematicalAlphanumericSymbols
20000 2A6D6 CJKUnifiedIdeographsExtensionB
2F800 2FA1F CJKCompatibilityIdeographsSupplement
E0000 E007F Tags
"""

BLOCKS: Final[dict[str, tuple[int, int]]] = {
    name: (int(first, 16), int(last, 16))
    for first, last, name in (line.split() for line in _TABLE.strip().splitlines())
}
"""The first and the last code point of each block, by its name."""
