"""Schemas, and documents that are valid or not: what we say about them, and jing has to agree."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A schema that is one, with documents of both kinds."""

    schema: str
    valid: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    files: dict[str, str] = {}  # noqa: RUF012 - never written to


class Bad(NamedTuple):
    """A text that is no schema, what is wrong with it, and where."""

    schema: str
    detail: str
    line: int
    column: int
    files: dict[str, str] = {}  # noqa: RUF012 - never written to
    peer_accepts: bool = False
    """Whether jing is more lenient than the specification here."""


GOOD: dict[str, Case] = {
    "person": Case(
        "start = element person { element name { xsd:string }, element age { xsd:int } }",
        (
            "<person><name>Ann</name><age>30</age></person>",
            "<person> <name/> <age> 30\n</age></person>",
        ),
        (
            "<person/>",
            "<person><age>30</age><name>Ann</name></person>",
            "<person><name>Ann</name><age>thirty</age></person>",
            "<person><name>Ann</name><age>30</age>!</person>",
            "<person><name>Ann</name><age>30</age><age>31</age></person>",
            "<person x=''><name>Ann</name><age>30</age></person>",
        ),
    ),
    "a bare pattern": Case("element a { empty }", ("<a/>", "<a> </a>"), ("<a>x</a>", "<b/>")),
    "text": Case("element a { text }", ("<a/>", "<a>x<!-- c -->y</a>"), ("<a><b/></a>",)),
    "repetition": Case(
        "element a { element b { empty }?, element c { empty }*, element d { empty }+ }",
        ("<a><d/></a>", "<a><b/><c/><c/><d/><d/></a>"),
        ("<a/>", "<a><b/><b/><d/></a>", "<a><d/><c/></a>"),
    ),
    "choice": Case(
        "element a { element b { text } | element c { text } | attribute d { text } }",
        ("<a><b/></a>", "<a><c>x</c></a>", "<a d=''/>"),
        ("<a/>", "<a><b/><c/></a>", "<a d=''><b/></a>"),
    ),
    "interleave": Case(
        "element a { element b { empty }* & element c { empty } & element d { empty }? }",
        ("<a><c/></a>", "<a><b/><c/><b/><d/><b/></a>"),
        ("<a/>", "<a><c/><c/></a>", "<a><b/><d/></a>"),
    ),
    "interleaved groups": Case(
        "element a { (element b { empty }, element c { empty }) & element d { empty } }",
        ("<a><b/><d/><c/></a>", "<a><d/><b/><c/></a>"),
        ("<a><c/><b/><d/></a>", "<a><b/><c/></a>"),
    ),
    "mixed": Case(
        "element p { mixed { element em { text }* } }",
        ("<p>one <em>two</em> three<em/></p>", "<p/>"),
        ("<p>one <strong>two</strong></p>",),
    ),
    "recursion": Case(
        "start = tree\ntree = element node { attribute id { xsd:int }?, tree* }",
        ("<node/>", "<node id='1'><node><node/></node><node id='2'/></node>"),
        ("<node id='x'/>", "<node><leaf/></node>"),
    ),
    "attributes in any order": Case(
        "element a { attribute x { text }, (attribute y { text } | attribute z { text })?, empty }",
        ("<a x='1'/>", "<a y='2' x='1'/>", "<a z='2' x='1'/>"),
        ("<a/>", "<a x='1' y='1' z='1'/>", "<a y='1'/>"),
    ),
    "attribute values": Case(
        'element a { attribute x { "one" | "two three" }, attribute y { xsd:int - "5" }? }',
        ("<a x='one'/>", "<a x=' two  three ' y='4'/>"),
        ("<a x='three'/>", "<a x='one' y='5'/>", "<a x='one' y='05x'/>"),
    ),
    "any attribute": Case(
        'namespace b = "urn:b"\n'
        "element a { attribute * - b:* { text }*, attribute b:x { xsd:int }? }",
        ("<a c='' d='e'/>", "<a xmlns:b='urn:b' b:x='1' c=''/>"),
        ("<a xmlns:b='urn:b' b:y=''/>", "<a xmlns:b='urn:b' b:x='y'/>"),
    ),
    "attributes are in no namespace by default": Case(
        'default namespace = "urn:d"\nelement a { attribute b { text } }',
        ("<a xmlns='urn:d' b=''/>",),
        ("<a xmlns='urn:d' xmlns:d='urn:d' d:b=''/>",),
    ),
    "times with and without a zone": Case(
        'element a { xsd:dateTime { minInclusive = "2000-01-01T00:00:00Z" } }',
        (
            "<a>2000-01-01T00:00:00Z</a>",
            "<a>2000-01-01T01:00:00+01:00</a>",
            "<a>2000-01-01T14:00:01</a>",
        ),
        (
            "<a>2000-01-01T05:00:00</a>",
            "<a>2000-01-01T00:59:59+01:00</a>",
            "<a>1999-12-31T09:59:59</a>",
        ),
    ),
    "months and days": Case(
        'element a { xsd:duration { minInclusive = "P1M" maxExclusive = "P1Y" } }',
        ("<a>P1M</a>", "<a>P32D</a>", "<a>P364D</a>", "<a>PT768H</a>"),
        ("<a>P31D</a>", "<a>P28D</a>", "<a>P366D</a>", "<a>-P2M</a>", "<a>P365D</a>"),
    ),
    "any element": Case(
        "start = any\nany = element * { (attribute * { text } | text | any)* }",
        ("<a/>", "<a b='c'>d<e/>f<g:h xmlns:g='urn:g' g:i=''/></a>"),
    ),
    "names": Case(
        'namespace n = "urn:n"\ndefault namespace = "urn:d"\n'
        "element (a | n:b | n:* | c) { element * - (n:* | a) { empty }* }",
        (
            "<a xmlns='urn:d'/>",
            "<b xmlns='urn:n'/>",
            "<x xmlns='urn:n'><x xmlns=''/></x>",
            "<c xmlns='urn:d'><b/><a xmlns=''/></c>",
        ),
        (
            "<a/>",
            "<d xmlns='urn:d'/>",
            "<c xmlns='urn:d'><a/></c>",
            "<c xmlns='urn:d'><a xmlns='urn:n'/></c>",
        ),
    ),
    "names of a namespace but some": Case(
        'namespace n = "urn:n"\nelement n:* - (n:a | n:b) { empty }',
        ("<c xmlns='urn:n'/>",),
        ("<a xmlns='urn:n'/>", "<c/>"),
    ),
    "keywords as names": Case(
        "start = \\start\n\\start = element element { attribute attribute { text }, element text "
        "{ list { xsd:int* } }, element \\empty { empty } }",
        ("<element attribute=''><text>1 2</text><empty/></element>",),
        ("<element><text/><empty/></element>",),
    ),
    "lists": Case(
        'element a { list { xsd:int, (xsd:int | "x")*, "end"? } }',
        ("<a>1</a>", "<a> 1 2 x\n3 end</a>"),
        ("<a/>", "<a>x</a>", "<a>1 end x</a>", "<a>1 y</a>"),
    ),
    "values of types": Case(
        'element a { xsd:int "5" | string " b" | token "c d" | "e" | xsd:boolean "true" }',
        ("<a>05</a>", "<a> b</a>", "<a> c\n\nd </a>", "<a> e </a>", "<a>1</a>"),
        ("<a>6</a>", "<a>b</a>", "<a>cd</a>", "<a>false</a>"),
    ),
    "an empty value": Case('element a { "" }', ("<a/>", "<a>  </a>"), ("<a>x</a>",)),
    "an empty string or an element": Case(
        'element a { string "" | element b { empty } }', ("<a/>", "<a><b/></a>"), ("<a>x</a>",)
    ),
    "literals": Case(
        'element a { "it\'s" | \'a "b"\' | """c "d"\n e""" | \'\'\'f\'\'g\'\'\' | "h" ~ "i"~"j" }',
        ("<a>it's</a>", '<a>a "b"</a>', '<a>c "d" e</a>', "<a>f''g</a>", "<a>hij</a>"),
        ("<a>its</a>", "<a>h</a>"),
    ),
    "escapes": Case(
        '\\x{65}lement \\x{E9}t\\xx{e9} { string "\\x{41}\\x{A}\\x{1F600}" }',
        ("<été>A\n😀</été>",),
        ("<été>A\n</été>",),
    ),
    "comments and annotations": Case(
        """
        # A comment.
        namespace a = "urn:a"
        namespace local = ""
        ## Documentation
        ## of two lines.
        [ a:version = "1" a:note [ lang = "en" "text " ~ "more" a:b [ ] "again" plain [ ] ] ]
        start =
            ## An element.
            [ a:x = "y" ]
            element r { ## inside
                [ a:q = "r" ] (element b { text } >> a:after [ "x" ])* >> a:after [ ] >> a:more [ ]
            }
        a:between [ "definitions" ]
        unused [ a:x = "" ]
        div { a:first [ ] [ a:y = "z" ] b = [ a:z = "" ] element ## name
           c { [ a:p = "" ] xsd:string { ## param
             [ a:k = "v" ] maxLength = "3" } } }
        """,
        ("<r><b/></r>",),
        ("<r><c/></r>",),
    ),
    "parameters": Case(
        'element a { xsd:string { minLength = "2" maxLength = "3" pattern = "[a-c]+" } '
        '| xsd:int { minInclusive = "5" maxExclusive = "10" } }',
        ("<a>ab</a>", "<a>abc</a>", "<a>5</a>", "<a> 9 </a>"),
        ("<a>a</a>", "<a>abcd</a>", "<a>xyz</a>", "<a>4</a>", "<a>10</a>"),
    ),
    "decimals": Case(
        'element a { xsd:decimal { totalDigits = "4" fractionDigits="2" minExclusive="-1.5" } }',
        ("<a>12.34</a>", "<a>0012.34</a>", "<a>-1.4</a>", "<a>+.5</a>"),
        ("<a>123.45</a>", "<a>1.234</a>", "<a>-1.50</a>", "<a>1e2</a>"),
    ),
    "exceptions": Case(
        'element a { xsd:string - ("x" | "y" | xsd:int { maxInclusive = "3" }) }',
        ("<a/>", "<a>z</a>", "<a>4</a>"),
        ("<a>x</a>", "<a>  y </a>", "<a>3</a>"),
    ),
    "nested grammars": Case(
        """
        start = element out { inner, shared }
        shared = element s { text }
        inner = grammar {
            start = element in { shared?, parent shared }
            shared = element t { grammar { start = parent other } }
            other = element o { empty }
        }
        """,
        ("<out><in><t><o/></t><s/></in><s/></out>", "<out><in><s/></in><s/></out>"),
        ("<out><in><t><s/></t></in><s/></out>", "<out><in/><s/></out>"),
    ),
    "combined definitions": Case(
        """
        start |= element a { body }
        start |= element b { body }
        body &= element c { empty }?
        body = element d { empty }?
        body &= element e { empty }?
        """,
        ("<a/>", "<b><e/><c/><d/></b>"),
        ("<c/>", "<a><c/><c/></a>"),
    ),
    "includes": Case(
        """
        default namespace = "urn:d"
        namespace x = "urn:x"
        include "base.rnc" inherit = x {
            start = element root { item+, extra }
            div { item = element thing { text } }
        }
        extra = element extra { empty }
        """,
        ("<root xmlns='urn:d'><thing/><thing/><extra/></root>",),
        ("<list xmlns='urn:x'/>", "<root xmlns='urn:d'><item xmlns='urn:x'/><extra/></root>"),
        files={"base.rnc": "start = element list { item* }\nitem = element item { x }\nx = text"},
    ),
    "an included grammar with braces, in a folder": Case(
        'include "sub/one.rnc"\nb |= element c { empty }',
        ("<a><b/></a>", "<a><c/></a>"),
        ("<a/>",),
        files={
            "sub/one.rnc": 'grammar { include "two.rnc" { b |= element b { empty } } '
            "start = element a { b } }",
            "sub/two.rnc": "b = notAllowed",
        },
    ),
    "external patterns": Case(
        'default namespace = "urn:d"\nelement a { external "part.rnc", external "other.rnc" }',
        ("<a xmlns='urn:d'><b/><c xmlns=''/></a>",),
        ("<a xmlns='urn:d'><b xmlns=''/><c xmlns=''/></a>",),
        files={
            "part.rnc": "element b { empty }",
            "other.rnc": 'default namespace = ""\nstart = element c { empty }',
        },
    ),
    "an external pattern sees the grammar around it": Case(
        'start = element a { external "part.rnc" }\nb = element b { empty }',
        ("<a><b/><b/></a>",),
        ("<a/>",),
        files={"part.rnc": "b+"},
    ),
    "inherited namespaces": Case(
        'namespace p = "urn:p"\nelement p:a { external "part.rnc" inherit = p }',
        ("<a xmlns='urn:p'><b/></a>",),
        ("<a xmlns='urn:p'><b xmlns=''/></a>",),
        files={"part.rnc": "namespace here = inherit\nelement here:b { empty }"},
    ),
    "nothing is allowed": Case(
        "element a { element b { notAllowed } | element c { empty } | notAllowed }",
        ("<a><c/></a>",),
        ("<a><b/></a>",),
    ),
    "a start that is not allowed": Case("start = notAllowed", (), ("<a/>",)),
    "unused definitions": Case(
        "start = element a { empty }\nunused = attribute b { empty }, text, list { xsd:int }",
        ("<a/>",),
    ),
    "unused recursion": Case("start = element a { empty }\nunused = unused?", ("<a/>",)),
    "repeated attributes of a choice": Case(
        "element a { (attribute b { text } | attribute c { text })+ }",
        ("<a b=''/>", "<a b='' c=''/>"),
        ("<a/>",),
    ),
    "blanks around data": Case(
        "element a { element b { xsd:token } | element c { xsd:int }* }",
        ("<a>\n <b> x </b>\n</a>", "<a>  </a>", "<a> <c> 1 </c> </a>"),
        ("<a>\n <b> x </b>\n y</a>",),
    ),
    "text between elements": Case(
        "element a { text, element b { empty }, text }",
        ("<a><b/></a>", "<a>x<b/>y</a>"),
        ("<a/>", "<a>x</a>"),
    ),
    "names in content": Case(
        'namespace p = "urn:p"\nelement a { xsd:QName "p:x" }',
        ("<a xmlns:q='urn:p'>q:x</a>", "<a xmlns:p='urn:p'> p:x </a>"),
        ("<a>x</a>", "<a xmlns:p='urn:q'>p:x</a>", "<a>q:x</a>"),
    ),
    "the xml prefix": Case(
        "element a { attribute xml:lang { xsd:language }? }",
        ("<a xml:lang='de-AT'/>",),
        ("<a xml:lang='-'/>", "<a lang='de'/>"),
    ),
    "datatypes by another prefix": Case(
        'datatypes d = "http://www.w3.org/2001/XMLSchema-datatypes"\nelement a { d:int }',
        ("<a>1</a>",),
        ("<a>x</a>",),
    ),
    "ambiguous content": Case(
        "start = element a { (b*, element c { empty }) | (b*, element d { empty }) }\n"
        "b = element b { empty }",
        ("<a><b/><b/><c/></a>", "<a><b/><d/></a>", "<a><c/></a>"),
        ("<a><b/></a>", "<a><c/><d/></a>"),
    ),
    "elements that look alike": Case(
        "element a { element b { attribute x { text } } | element b { element c { empty } } }",
        ("<a><b x=''/></a>", "<a><b><c/></b></a>"),
        ("<a><b/></a>", "<a><b x=''><c/></b></a>"),
    ),
}


def _types(name: str, valid: str, invalid: str) -> Case:
    def documents(texts: str) -> tuple[str, ...]:
        return tuple(f"<a>{text}</a>" for text in texts.split("|"))

    return Case(f"element a {{ xsd:{name} }}", documents(valid), documents(invalid))


GOOD |= {
    f"xsd:{name}": _types(name, valid, invalid)
    for name, valid, invalid in (
        ("boolean", "true|false|1|0| true ", "TRUE|yes||2"),
        ("byte", "127|-128|+1|007", "128|-129|1.0|"),
        ("short", "32767|-32768", "32768"),
        ("int", "2147483647|-2147483648", "2147483648|1e1|- 1"),
        ("long", "9223372036854775807|-9223372036854775808", "9223372036854775808"),
        ("unsignedByte", "255|0|+0|-0", "256|-1"),
        ("unsignedShort", "65535", "65536"),
        ("unsignedInt", "4294967295", "4294967296"),
        ("unsignedLong", "18446744073709551615", "18446744073709551616|-1"),
        ("integer", "-123456789012345678901234567890|0", "1.|x"),
        ("nonNegativeInteger", "0|5", "-1"),
        ("positiveInteger", "1", "0"),
        ("nonPositiveInteger", "0|-5", "1"),
        ("negativeInteger", "-1", "0"),
        ("decimal", "1.5|-.5|+3.|00", "1e5|.|1,5|INF"),
        ("double", "1.5|-1E4|1e-400|INF|-INF|NaN|.5|12.", "inf|+INF|1e|e5|0x10|"),
        ("float", "3.4e38|INF", "f"),
        (
            "date",
            "2004-02-29|2001-10-26+02:00|2001-10-26Z|-0044-03-15",
            "2003-02-29|01-10-26|2001-10-26+15:00|2001-13-01|2001-1-1",
        ),
        ("time", "21:32:52|21:32:52.5Z|00:00:00+14:00", "25:00:00|1:20:10|21:32|21:60:00"),
        (
            "dateTime",
            "2001-10-26T21:32:52|2001-10-26T21:32:52.12679+02:00|12001-10-26T00:00:00Z",
            "2001-10-26|2001-10-26T21:32|2001-10-26T25:32:52",
        ),
        ("gYearMonth", "2001-10|2001-10+02:00", "2001|2001-13"),
        ("gYear", "2001|-2001Z", "01"),
        ("gMonthDay", "--05-01|--11-30Z|--02-29", "--02-30|05-01|--13-01"),
        ("gDay", "---01|---31Z", "--30|---32"),
        ("gMonth", "--05|--11Z", "--13|05|-05-"),
        ("duration", "P1Y2M3DT5H20M30.123S|-P120D|PT0S|P1Y", "1Y|P|P1YT|PT|P-20M|P1S|P1M2Y"),
        ("hexBinary", "0aF3||00", "0|xy|0 a"),
        ("base64Binary", "AAAA|YQ==| Y Q = = |", "A|YQ=|====|Y$=="),
        ("language", "en|en-US|x-klingon", "1en|toolonglanguage|"),
        ("Name", "a:b|_x|:a", "1a|a b|"),
        ("NCName", "a|_b.c-d", "a:b|1"),
        ("NMTOKEN", "1a|a:b|-", "a b|"),
        ("NMTOKENS", "a b c|1", "|a ,"),
        ("normalizedString", "a  b|", "<x/>"),
        ("token", "a|  a  b ", "<x/>"),
        ("anyURI", "http://a.example/b?c#d|x|../y|urn:a:b|", "http://a%zz|:a"),
        ("ID", "a1", "1a"),
        ("IDREF", "a1", "1a"),
        ("IDREFS", "a1 b2", "|1"),
        ("QName", "a|xml:b", "z:a|a:|:a|1"),
    )
}

GOOD |= {
    f"the expression {expression}": Case(
        f'element a {{ xsd:string {{ pattern = "{expression}" }} }}',
        tuple(f"<a>{text}</a>" for text in valid.split("|")),
        tuple(f"<a>{text}</a>" for text in invalid.split("|")),
    )
    for expression, valid, invalid in (
        (r"a(b|c)*d?", "a|abcbd|ad", "|abd d|b"),
        (r"[a-z-[aeiou]]+", "bcd|z", "a|bcda"),
        (r"[^0-9]{2,4}", "ab|abcd", "a|abcde|a1"),
        (r"\d{3}-\d{2,}", "123-45|123-4567", "12-34|123-4"),
        (r"\i\c*", "a:b-1|_", "1a|-"),
        (r"\p{Lu}\P{Lu}*", "Abc|Ä1", "abc|AB"),
        (r"\p{IsGreek}+", "αβγ", "abc"),
        (r"(a|b){0}c", "c", "ac"),
        (r"x{0,2}y{3}", "yyy|xxyyy", "xxxyyy|yy"),
        (r"[\-+.]|\\|\.|\s", "-|+|.|\\| ", "a|"),
        (r"\w+\W\S", "ab!c", "ab|a!!!"),
        (r"(a*)*b", "aaab|b", "aaa"),
        (r".\n?", "x", "|xy"),
        (r"[a\-z]+", "a-z", "b"),
        (r"", "", "a"),
        (r"a|", "|a", "b"),
        (r"^a$", "^a$", "a"),
    )
}

_IN = "element a { %s }"

BAD: dict[str, Bad] = {
    # Tokens
    "an unknown sign": Bad("element a { $ }", "no token starts like this", 1, 13),
    "an open literal": Bad('element a { "b }', "a literal has no end", 1, 13),
    "a literal on two lines": Bad('element a { "b\nc" }', "a literal has no end", 1, 13),
    "a malformed escape": Bad("element a { \\x{zz} }", "something else was expected", 1, 15),
    "a lonely backslash": Bad("element a { \\ }", "no token starts like this", 1, 13),
    "an illegal character": Bad("element a { \x01 }", "XML does not allow this character", 1, 13),
    "an illegal escape": Bad('element a { "\\x{1}" }', "XML does not allow this character", 1, 14),
    "an escape beyond Unicode": Bad(
        'element a { "\\x{110000}" }', "XML does not allow this character", 1, 14
    ),
    "an error behind an escape": Bad(
        'element a { "\\x{41}",\n  "\\x{42}" $ }', "no token starts like this", 2, 12
    ),
    # Syntax
    "nothing": Bad("", "a grammar has no start", 1, 1),
    "no brace": Bad("element a text", "something else was expected", 1, 11),
    "no end": Bad("element a { text", "something else was expected", 1, 17),
    "too much": Bad("element a { text } }", "something else was expected", 1, 20),
    "no pattern": Bad("element a { }", "something else was expected", 1, 13),
    "no name": Bad("element { text }", "something else was expected", 1, 9),
    "a keyword for a pattern": Bad(
        "element a { div }", "a keyword stands where a pattern was expected", 1, 13
    ),
    "two kinds of connectors": Bad(
        "element a { text, text | empty }", "connectors of two kinds need parentheses", 1, 24
    ),
    "two repetitions": Bad("element a { text?* }", "something else was expected", 1, 18),
    "an exception in a choice": Bad(
        'element a { xsd:int - "1" | "2" }',
        "a datatype with exceptions needs parentheses here",
        1,
        27,
    ),
    "an exception at the end of a choice": Bad(
        'element a { "2" | xsd:int - "1" }',
        "a datatype with exceptions needs parentheses here",
        1,
        33,
    ),
    "an exception repeated": Bad(
        'element a { list { xsd:int - "1"* } }',
        "a datatype with exceptions needs parentheses here",
        1,
        33,
    ),
    "an exception of an exception": Bad(
        'element a { xsd:int - xsd:int - "1" }',
        "a datatype with exceptions needs parentheses here",
        1,
        37,
    ),
    "no definition": Bad("start = element a { text } b", "something else was expected", 1, 29),
    "documentation behind": Bad("element a { text } ## no", "something else was expected", 1, 20),
    "no literal behind a tilde": Bad('element a { "b" ~ c }', "something else was expected", 1, 19),
    "a keyword defined": Bad("text = element a { text }", "something else was expected", 1, 6),
    "an include among overrides": Bad(
        'include "a.rnc" { include "b.rnc" }',
        "something else was expected",
        1,
        19,
        files={"a.rnc": "start = element a { empty }", "b.rnc": ""},
    ),
    # Declarations
    "an unknown prefix": Bad("element p:a { text }", "a prefix was not declared", 1, 9),
    "an unknown prefix with a star": Bad("element p:* { text }", "a prefix was not declared", 1, 9),
    "an unknown library": Bad("element a { p:int }", "a datatype library was not declared", 1, 13),
    "a prefix twice": Bad(
        'namespace p = "a"\nnamespace p = "b"\nelement p:a { text }',
        "a prefix is declared twice",
        2,
        1,
        peer_accepts=True,
    ),
    "a library twice": Bad(
        'datatypes p = "a"\ndatatypes p = "b"\nelement a { text }',
        "a prefix is declared twice",
        2,
        1,
        peer_accepts=True,
    ),
    "two default namespaces": Bad(
        'default namespace = "a"\ndefault namespace p = "b"\nelement a { text }',
        "the default namespace is declared twice",
        2,
        1,
        peer_accepts=True,
    ),
    "xmlns declared": Bad(
        'namespace xmlns = "a"\nelement a { text }',
        "neither the prefix xmlns nor its namespace can be declared",
        1,
        1,
    ),
    "the namespace of xmlns declared": Bad(
        'default namespace = "http://www.w3.org/2000/xmlns/"\nelement a { text }',
        "neither the prefix xmlns nor its namespace can be declared",
        1,
        1,
        peer_accepts=True,
    ),
    "xml for something else": Bad(
        'namespace xml = "a"\nelement a { text }',
        "the prefix xml and its namespace can only be declared for each other",
        1,
        1,
    ),
    "something else for xml": Bad(
        'namespace x = "http://www.w3.org/XML/1998/namespace"\nelement a { text }',
        "the prefix xml and its namespace can only be declared for each other",
        1,
        1,
    ),
    "xsd for something else": Bad(
        'datatypes xsd = "a"\nelement a { text }',
        "the prefix xsd is reserved for the types of XML Schema",
        1,
        1,
        peer_accepts=True,
    ),
    # Annotations
    "an annotation without a namespace": Bad(
        '[ a = "b" ] element a { text }', "something else was expected", 1, 5
    ),
    "an annotation of RELAX NG": Bad(
        'namespace r = "http://relaxng.org/ns/structure/1.0"\n[ r:a = "b" ] element a { text }',
        "an annotation must not be in the namespace of RELAX NG",
        2,
        3,
    ),
    "an annotation element of RELAX NG": Bad(
        'namespace r = "http://relaxng.org/ns/structure/1.0"\n[ r:a [ ] ] element a { text }',
        "an annotation must not be in the namespace of RELAX NG",
        2,
        3,
    ),
    "an annotation twice": Bad(
        'namespace p = "p"\n[ p:a = "b" p:a = "c" ] element a { text }',
        "an annotation has an attribute twice",
        2,
        13,
    ),
    "an annotation that declares": Bad(
        'namespace p = "p"\n[ p:a [ xmlns = "c" ] ] element a { text }',
        "an annotation must not declare a namespace",
        2,
        9,
    ),
    "an annotation behind everything": Bad(
        'namespace p = "p"\nelement a { text } >> p:x [ ]',
        "no annotation can follow the outermost pattern",
        2,
        20,
    ),
    # Names
    "an exception of everything": Bad("element * - * { text }", "* cannot be an exception", 1, 13),
    "an exception of a namespace": Bad(
        'namespace p = "p"\nelement p:* - p:* { text }',
        "a namespace cannot be an exception of a namespace",
        2,
        15,
    ),
    "an exception in parentheses": Bad(
        "element (*) - a { text }", "something else was expected", 1, 13
    ),
    "an exception of a name": Bad("element a - b { text }", "something else was expected", 1, 11),
    "xmlns as an attribute": Bad(
        _IN % "attribute xmlns { text }", "xmlns cannot be the name of an attribute", 1, 23
    ),
    # Files
    "a file that is not there": Bad(
        'element a { external "none.rnc" }', "a file cannot be read", 1, 13
    ),
    "a fragment": Bad(
        'element a { external "b.rnc#c" }',
        "a reference to a file has a fragment",
        1,
        13,
        files={"b.rnc": "element b { text }"},
        peer_accepts=True,
    ),
    "a file that includes itself": Bad(
        'include "schema.rnc"\nstart = element a { text }', "a file refers to itself", 1, 9
    ),
    "an external pattern in itself": Bad(
        'element a { external "schema.rnc" }', "a file refers to itself", 1, 13
    ),
    "an included pattern": Bad(
        'include "b.rnc"',
        "only a grammar can be included",
        1,
        9,
        files={"b.rnc": "element b { text }"},
    ),
    "an override of nothing": Bad(
        'include "b.rnc" { c = text }',
        "an include overrides a name that the included file does not define",
        1,
        19,
        files={"b.rnc": "start = element b { text }"},
    ),
    "an error in another file": Bad(
        'include "b.rnc"',
        "something else was expected",
        1,
        9,
        files={"b.rnc": "start = }"},
    ),
    # Definitions
    "an unknown definition": Bad("start = element a { b }", "no definition has this name", 1, 21),
    "an unknown definition outside": Bad(
        "start = element a { grammar { start = parent b } }", "no definition has this name", 1, 39
    ),
    "no grammar outside": Bad(
        "start = element a { parent b }\nb = text", "no definition has this name", 1, 21
    ),
    "a reference without a grammar": Bad(_IN % "b", "no definition has this name", 1, 13),
    "an unknown definition in one that is not used": Bad(
        "start = element a { text }\nb = c", "no definition has this name", 2, 5
    ),
    "no start": Bad("a = element a { text }", "a grammar has no start", 1, 1),
    "a definition twice": Bad(
        "start = a\na = element a { text }\na = element b { text }",
        "a definition is repeated without a connector (|= or &=)",
        3,
        1,
    ),
    "two ways to combine": Bad(
        "start = element a { b }\nb |= text\nb &= text",
        "the definitions of a name must not use both |= and &=",
        3,
        1,
    ),
    "recursion": Bad(
        "start = element x { a }\na = text | b\nb = a?",
        "a definition refers to itself outside of elements",
        3,
        5,
    ),
    # Datatypes
    "an unknown type": Bad(_IN % "xsd:number", "no datatype has this name", 1, 13),
    "an unknown datatype library": Bad(
        'datatypes d = "urn:d"\nelement a { d:int }', "no datatype library has this name", 2, 13
    ),
    "a value that is none": Bad(_IN % 'xsd:int "x"', "this is not a value of the type", 1, 13),
    "a parameter of another type": Bad(
        _IN % 'xsd:int { maxLength = "1" }', "the type does not have this parameter", 1, 13
    ),
    "an unknown parameter": Bad(
        _IN % 'xsd:int { colour = "1" }', "the type does not have this parameter", 1, 13
    ),
    "a parameter that is no number": Bad(
        _IN % 'xsd:string { length = "x" }', "the parameter cannot have this value", 1, 13
    ),
    "a bound that is no value": Bad(
        _IN % 'xsd:int { minInclusive = "x" }', "this is not a value of the type", 1, 13
    ),
    "a malformed expression": Bad(
        _IN % 'xsd:string { pattern = "(" }', "an expression is malformed", 1, 13
    ),
    "an expression that is too large": Bad(
        _IN % 'xsd:string { pattern = "((a{50}){50}){50}" }',
        "an expression is too large",
        1,
        13,
        peer_accepts=True,
    ),
    "an expression that is too deep": Bad(
        _IN % f'xsd:string {{ pattern = "{"(" * 60}a{")" * 60}" }}',
        "an expression is too deeply nested",
        1,
        13,
        peer_accepts=True,
    ),
    "parameters of token": Bad(
        _IN % 'token { length = "1" }', "this type has no parameters", 1, 13
    ),
    # Section 7
    "an attribute in an attribute": Bad(
        _IN % "attribute b { attribute c { text } }", "a pattern is not allowed here", 1, 27
    ),
    "an element in an attribute": Bad(
        _IN % "attribute b { element c { text } }", "a pattern is not allowed here", 1, 27
    ),
    "a repeated group of attributes": Bad(
        _IN % "(attribute b { text }, attribute c { text })+",
        "a pattern is not allowed here",
        1,
        14,
    ),
    "text in a list": Bad(_IN % "list { text }", "a pattern is not allowed here", 1, 1),
    "a list in a list": Bad(
        _IN % "list { list { xsd:int } }", "a pattern is not allowed here", 1, 1
    ),
    "an element in a list": Bad(
        _IN % "list { element b { text } }", "a pattern is not allowed here", 1, 20
    ),
    "an interleave in a list": Bad(
        _IN % 'list { "b" & "c" }', "a pattern is not allowed here", 1, 1
    ),
    "text as an exception": Bad(_IN % "xsd:int - text", "a pattern is not allowed here", 1, 1),
    "a list as an exception": Bad(
        _IN % "xsd:int - list { xsd:int }", "a pattern is not allowed here", 1, 1
    ),
    "text at the start": Bad("start = text", "a pattern is not allowed here", 1, 1),
    "a group at the start": Bad(
        "start = element a { text }, element b { text }", "a pattern is not allowed here", 1, 1
    ),
    "an attribute at the start": Bad("attribute a { text }", "a pattern is not allowed here", 1, 1),
    "an optional start": Bad("element a { text }?", "a pattern is not allowed here", 1, 1),
    "data beside an element": Bad(
        _IN % "xsd:int, element b { text }",
        "a datatype has to be the only content of its element",
        1,
        1,
    ),
    "data twice": Bad(
        _IN % "xsd:int, xsd:int", "a datatype has to be the only content of its element", 1, 1
    ),
    "repeated data": Bad(
        _IN % "xsd:int+", "a datatype has to be the only content of its element", 1, 1
    ),
    "data beside text": Bad(
        _IN % "xsd:int & text", "a datatype has to be the only content of its element", 1, 1
    ),
    "an attribute twice": Bad(
        _IN % "attribute b { text }, (attribute b { text } | attribute c { text })",
        "an element could have an attribute twice",
        1,
        13,
    ),
    "an attribute of any name, and another": Bad(
        _IN % "attribute * { text }*, attribute b { text }",
        "an element could have an attribute twice",
        1,
        13,
    ),
    "two sets of names with names in common": Bad(
        _IN % "attribute * - b { text }*, attribute * - c { text }*",
        "an element could have an attribute twice",
        1,
        13,
    ),
    "an attribute of any name, once": Bad(
        _IN % "attribute * { text }",
        "an attribute of any name must be repeatable: add + or *",
        1,
        13,
    ),
    "text on two sides": Bad(
        _IN % "text & (element b { text }, text)", "an interleave has text in two parts", 1, 1
    ),
    "mixed text": Bad(_IN % "mixed { text }", "an interleave has text in two parts", 1, 1),
    "an element on two sides": Bad(
        _IN % "element b { text } & element b { empty }",
        "an interleave has an element in two parts",
        1,
        13,
    ),
    "any element and another": Bad(
        _IN % "element * - c { text } & element b { empty }",
        "an interleave has an element in two parts",
        1,
        13,
    ),
}
