"""A corpus in the manner of the W3C's XML conformance tests: documents by what they try out.

WELL_FORMED ones have to come through every codec. REFUSED ones are well-formed, but more than we
accept. MALFORMED ones come with what is wrong and where. Bytes are written out where the encoding
matters.
"""

from collections.abc import Mapping
from typing import Final

BOM: Final = b"\xef\xbb\xbf"
LONG_TAIL: Final = b"<a>" + b"<b><c>x</c></b>" * 2000 + b"</a>"


def _utf16(text: str, order: str) -> bytes:
    mark = b"\xff\xfe" if order == "le" else b"\xfe\xff"
    return mark + text.encode(f"utf-16-{order}")


WELL_FORMED: Final[Mapping[str, Mapping[str, bytes]]] = {
    "structure": {
        "an empty element": b"<a/>",
        "an empty element in two tags": b"<a></a>",
        "blanks in tags": b"<a\n\t k = '1' \r\n ></a\t>",
        "blanks around the root": b"\n \t<a/>\r\n  ",
        "nesting": b"<a><b><c/></b><b/></a>",
        "depth": b"<a>" * 150 + b"</a>" * 150,
        "many children": LONG_TAIL,
        "mixed content": b"<p>one <b>two</b> three <i/> four</p>",
    },
    "declaration": {
        "version": b"<?xml version='1.0'?><a/>",
        "version and encoding": b'<?xml version="1.0" encoding="UTF-8"?><a/>',
        "standalone": b"<?xml version='1.0' standalone='yes'?>\n<a/>",
        "everything": b"<?xml version='1.0' encoding='utf-8' standalone='no' ?><a/>",
        "none": b"<a/>",
    },
    "charsets": {
        "ascii": b"<a>plain</a>",
        "utf-8": "<a>äöü € 名 😀</a>".encode(),
        "utf-8 with a mark": BOM + "<a>ä</a>".encode(),
        "utf-16, little end first": _utf16("<a>ä 😀</a>", "le"),
        "utf-16, big end first": _utf16("<?xml version='1.0' encoding='UTF-16'?><a>名</a>", "be"),
        "latin 1": "<?xml version='1.0' encoding='ISO-8859-1'?><a k='ä'>ÿ</a>".encode("latin-1"),
        "us-ascii": b"<?xml version='1.0' encoding='US-ASCII'?><a>&#228;</a>",
        "names beyond ascii": "<näme été='1'><名/></näme>".encode(),
        "the last characters": "<a>\ud7ff\ue000\ufffd\U00010000\U0010ffff</a>".encode(),
        "controls that are allowed": b"<a>\t\n</a>",
        "c1 controls": "<a>\x85\x7f\x9f\u2028</a>".encode(),
        "noncharacters above the plane": "<a>\U0001fffe\U0010fffe</a>".encode(),
    },
    "character data": {
        "text": b"<a>x</a>",
        "blanks alone": b"<a> \n\t </a>",
        "greater than": b"<a>1 > 0</a>",
        "brackets": b"<a>]] ]> ]</a>",
        "quotation marks": b"<a>\"'</a>",
        "a megabyte": b"<a>" + b"0123456789" * 100_000 + b"</a>",
        "combining marks": "<a>e\u0301 \u1e9b\u0323</a>".encode(),
    },
    "references": {
        "the five": b"<a>&amp;&lt;&gt;&quot;&apos;</a>",
        "decimal": b"<a>&#65;&#8364;&#128512;</a>",
        "hexadecimal": b"<a>&#x41;&#x20AC;&#x1F600;&#x00041;</a>",
        "blanks": b"<a>&#9;&#10;&#13;&#32;</a>",
        "in values": b"<a k='&amp;&lt;&#x41;&#10;&#13;&#9;&quot;'/>",
        "an ampersand that starts none": b"<a>&#38;lt; &amp;amp;</a>",
        "a tag that is none": b"<a>&lt;b/&gt;</a>",
        "what ends a section": b"<a>]]&gt;</a>",
    },
    "cdata": {
        "empty": b"<a><![CDATA[]]></a>",
        "markup": b"<a><![CDATA[<b>&amp;</b>]]></a>",
        "brackets": b"<a><![CDATA[]]]]><![CDATA[>]]></a>",
        "between texts": b"<a>x<![CDATA[ y ]]>z</a>",
        "line ends": b"<a><![CDATA[1\r\n2\r3]]></a>",
        "several": b"<a><![CDATA[1]]><![CDATA[2]]></a>",
    },
    "comments": {
        "everywhere": b"<!--1--><a><!--2-->x<!--3--></a><!--4-->",
        "empty": b"<a><!----></a>",
        "markup": b"<a><!-- <b>&amp;&undefined; ]]> ?> - --></a>",
        "lines": b"<a><!--\r\n1\r2\n--></a>",
        "beyond ascii": "<a><!--名--></a>".encode(),
    },
    "instructions": {
        "everywhere": b"<?a 1?><a><?b 2?>x<?c?></a><?d  3 ?>",
        "no data": b"<a><?go?></a>",
        "like a declaration": b"<a><?xml-style href='x'?><?xmlish?></a>",
        "markup": b"<a><?go <b>&c; ]]> -- ? > ?></a>",
        "question marks": b"<a><?go ??></a>",
        "blanks before data": b"<a><?go \t\n x y?></a>",
        "beyond ascii": "<?名 ü?><a/>".encode(),
    },
    "attributes": {
        "both quotation marks": b'<a k="it\'s" l=\'say "hi"\'/>',
        "empty": b"<a k=''/>",
        "normalised blanks": b"<a k='1\t2\n3\r\n4\r5 6'/>",
        "blanks that stay": b"<a k='&#9;&#10;&#13;'/>",
        "greater than": b"<a k='1>0'/>",
        "order": b"<a z='1' y='2' x='3'/>",
        "names": b"<a _='1' a.b-c='2' a1='3'/>",
        "many": b"<a " + b" ".join(b"k%d='%d'" % (n, n) for n in range(200)) + b"/>",
        "xml": b"<a xml:lang='fi' xml:space='preserve' xml:id='x' xml:base='http://x/'/>",
        "like a namespace": b"<a xmlnsx='1'/>",
    },
    "line ends": {
        "all of them": b"<a>1\n2\r\n3\r4\n\r5\r\r\n6</a>",
        "as references": b"<a>1&#13;2&#13;&#10;3</a>",
        "in tags": b"<a\r\nk='1'\r/>",
    },
    "namespaces": {
        "default": b"<a xmlns='urn:a'><b/></a>",
        "default taken back": b"<a xmlns='urn:a'><b xmlns=''><c/></b></a>",
        "prefix": b"<p:a xmlns:p='urn:p' p:k='1' k='2'><p:b/></p:a>",
        "redeclared": b"<p:a xmlns:p='urn:p'><p:b xmlns:p='urn:q'><p:c/></p:b><p:d/></p:a>",
        "two prefixes of one": b"<p:a xmlns:p='urn:p' xmlns:q='urn:p'><q:b/></p:a>",
        "unused": b"<a xmlns:p='urn:p'/>",
        "xml declared": b"<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='x'/>",
        "declared behind its use": b"<p:a p:k='1' xmlns:p='urn:p'/>",
        "characters": b"<a xmlns='http://x.example/?a=1&amp;b=%20#c'/>",
        "beyond ascii": "<a xmlns='urn:ä'/>".encode(),
        "default does not reach attributes": b"<a xmlns='urn:a' k='1'/>",
        "same local names": b"<a xmlns:p='urn:p' xmlns:q='urn:q' k='1' p:k='2' q:k='3'/>",
    },
    "names": {
        "first characters": "<_a><b:c xmlns:b='urn:b'/><é/><名/></_a>".encode(),
        "other characters": "<a-b.c_d·e1/>".encode(),
        "long": b"<" + b"n" * 1000 + b"/>",
        "case": b"<A><a/></A>",
    },
    "document types": {
        "bare": b"<!DOCTYPE a><a/>",
        "system": b"<!DOCTYPE a SYSTEM 'a.dtd'><a/>",
        "public": b"<!DOCTYPE a PUBLIC '-//X//Y//EN' 'http://x.example/a.dtd'><a/>",
        "empty subset": b"<!DOCTYPE a []><a/>",
        "elements": b"<!DOCTYPE a [<!ELEMENT a (b|c)*><!ELEMENT b EMPTY><!ELEMENT c ANY>]><a/>",
        "attributes": b"<!DOCTYPE a [<!ATTLIST a k CDATA #IMPLIED l (x|y) #REQUIRED>]><a l='x'/>",
        "defaults": b"<!DOCTYPE a [<!ATTLIST a k CDATA 'v' l CDATA #FIXED 'w'>]><a/>",
        "tokens": b"<!DOCTYPE a [<!ATTLIST a k NMTOKENS #IMPLIED>]><a k='  x   y '/>",
        "notations": b"<!DOCTYPE a [<!NOTATION n SYSTEM 'x'>]><a/>",
        "comments and instructions": b"<!DOCTYPE a [<!-- c --><?go?>]><a/>",
        "not what it says": b"<!DOCTYPE b><a/>",
    },
}

REFUSED: Final[Mapping[str, tuple[bytes, str]]] = {
    "an entity": (b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "entity declarations are refused"),
    "an entity that is not used": (
        b"<!DOCTYPE a [<!ENTITY e 'x'>]><a/>",
        "entity declarations are refused",
    ),
    "an external entity": (
        b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
        "entity declarations are refused",
    ),
    "an unparsed entity": (
        b"<!DOCTYPE a [<!NOTATION n SYSTEM 'x'><!ENTITY e SYSTEM 'x' NDATA n>]><a/>",
        "entity declarations are refused",
    ),
    "a parameter entity": (
        b"<!DOCTYPE a [<!ENTITY % p '<!ELEMENT a ANY>'> %p;]><a/>",
        "entity declarations are refused",
    ),
    "laughter": (
        b"<!DOCTYPE a [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'><!ENTITY c '&b;&b;'>]><a>&c;</a>",
        "entity declarations are refused",
    ),
    "an entity of an external subset in a value": (
        b"<!DOCTYPE a SYSTEM 'x'><a k='&e;'/>",
        "an attribute refers to an unknown entity",
    ),
    "an encoding that we have not": (
        "<?xml version='1.0' encoding='UTF-32'?><a/>".encode("utf-32"),
        "not well-formed (invalid token)",
    ),
    "depth": (b"<a>" * 201 + b"</a>" * 201, "elements are too deeply nested"),
    "attributes": (
        b"<a " + b" ".join(b"k%d='%d'" % (n, n) for n in range(257)) + b"/>",
        "an element has too many attributes",
    ),
    "a name": (b"<" + b"n" * 5000 + b"/>", "a name is too long"),
}

MALFORMED: Final[Mapping[str, Mapping[str, tuple[bytes, str]]]] = {
    "structure": {
        "nothing": (b"", "no element found"),
        "blanks alone": (b" \n ", "no element found"),
        "text alone": (b"x", "syntax error"),
        "two roots": (b"<a/><b/>", "junk after document element"),
        "text behind the root": (b"<a/>x", "junk after document element"),
        "text before the root": (b"x<a/>", "not well-formed (invalid token)"),
        "no end": (b"<a><b></b>", "no element found"),
        "wrong end": (b"<a></b>", "mismatched tag"),
        "crossed": (b"<a><b></a></b>", "mismatched tag"),
        "end first": (b"</a>", "not well-formed (invalid token)"),
        "cut in a tag": (b"<a", "unclosed token"),
        "cut in a value": (b"<a k='", "unclosed token"),
        "blank before a name": (b"< a/>", "not well-formed (invalid token)"),
        "blank before an end": (b"<a></ a>", "not well-formed (invalid token)"),
        "an attribute in an end": (b"<a></a k='1'>", "not well-formed (invalid token)"),
        "other case": (b"<A></a>", "mismatched tag"),
        "slash and blank": (b"<a / >", "not well-formed (invalid token)"),
    },
    "declaration": {
        "late": (b" <?xml version='1.0'?><a/>", "XML or text declaration not at start of entity"),
        "inside": (
            b"<a><?xml version='1.0'?></a>",
            "XML or text declaration not at start of entity",
        ),
        "no version": (b"<?xml encoding='utf-8'?><a/>", "XML declaration not well-formed"),
        "order": (
            b"<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>",
            "XML declaration not well-formed",
        ),
        "standalone": (
            b"<?xml version='1.0' standalone='maybe'?><a/>",
            "XML declaration not well-formed",
        ),
        "upper case": (b"<?XML version='1.0'?><a/>", "not well-formed (invalid token)"),
        "no end": (b"<?xml version='1.0'><a/>", "unclosed token"),
        "encoding": (b"<?xml version='1.0' encoding=''?><a/>", "XML declaration not well-formed"),
    },
    "charsets": {
        "broken utf-8": (b"<a>\xff</a>", "not well-formed (invalid token)"),
        "cut utf-8": (b"<a>\xc3</a>", "not well-formed (invalid token)"),
        "overlong utf-8": (b"<a>\xc0\x80</a>", "not well-formed (invalid token)"),
        "a surrogate in utf-8": (b"<a>\xed\xa0\x80</a>", "not well-formed (invalid token)"),
        "zero": (b"<a>\x00</a>", "not well-formed (invalid token)"),
        "a control": (b"<a>\x01</a>", "not well-formed (invalid token)"),
        "another control": (b"<a>\x1f</a>", "not well-formed (invalid token)"),
        "fffe": (b"<a>\xef\xbf\xbe</a>", "not well-formed (invalid token)"),
        "cut utf-16": (b"\xff\xfe<\x00a\x00/\x00>", "unclosed token"),
    },
    "references": {
        "unknown": (b"<a>&unknown;</a>", "undefined entity"),
        "no semicolon": (b"<a>&amp</a>", "not well-formed (invalid token)"),
        "ampersand": (b"<a>a & b</a>", "not well-formed (invalid token)"),
        "in a value": (b"<a k='a & b'/>", "not well-formed (invalid token)"),
        "unknown in a value": (b"<a k='&unknown;'/>", "undefined entity"),
        "of nothing": (b"<a>&#0;</a>", "reference to invalid character number"),
        "of a control": (b"<a>&#1;</a>", "reference to invalid character number"),
        "of a surrogate": (b"<a>&#xD800;</a>", "reference to invalid character number"),
        "of fffe": (b"<a>&#xFFFE;</a>", "reference to invalid character number"),
        "beyond the end": (b"<a>&#x110000;</a>", "reference to invalid character number"),
        "no digits": (b"<a>&#;</a>", "not well-formed (invalid token)"),
        "letters": (b"<a>&#xG;</a>", "not well-formed (invalid token)"),
        "decimal letters": (b"<a>&#A;</a>", "not well-formed (invalid token)"),
        "upper case x": (b"<a>&#X41;</a>", "not well-formed (invalid token)"),
        "outside": (b"&amp;<a/>", "not well-formed (invalid token)"),
    },
    "cdata": {
        "no end": (b"<a><![CDATA[x</a>", "unclosed CDATA section"),
        "outside": (b"<![CDATA[x]]><a/>", "syntax error"),
        "lower case": (b"<a><![cdata[x]]></a>", "not well-formed (invalid token)"),
        "end alone": (b"<a>]]></a>", "not well-formed (invalid token)"),
        "blank": (b"<a><! [CDATA[x]]></a>", "not well-formed (invalid token)"),
    },
    "comments": {
        "two hyphens": (b"<a><!-- -- --></a>", "not well-formed (invalid token)"),
        "three at the end": (b"<a><!-- x ---></a>", "not well-formed (invalid token)"),
        "no end": (b"<a><!-- x</a>", "unclosed token"),
        "inside a tag": (b"<a <!-- x --> />", "not well-formed (invalid token)"),
        "too short": (b"<a><!--></a>", "unclosed token"),
    },
    "instructions": {
        "no end": (b"<a><?go </a>", "unclosed token"),
        "no target": (b"<a><? go?></a>", "not well-formed (invalid token)"),
        "a target of digits": (b"<a><?1?></a>", "not well-formed (invalid token)"),
        "reserved": (b"<a><?XmL x?></a>", "not well-formed (invalid token)"),
        "no blank": (b"<a><?go+x?></a>", "not well-formed (invalid token)"),
    },
    "attributes": {
        "twice": (b"<a k='1' k='2'/>", "duplicate attribute"),
        "no value": (b"<a k/>", "not well-formed (invalid token)"),
        "no marks": (b"<a k=1/>", "not well-formed (invalid token)"),
        "wrong marks": (b"<a k='1\"/>", "unclosed token"),
        "less than": (b"<a k='<'/>", "not well-formed (invalid token)"),
        "no blank between": (b"<a k='1'l='2'/>", "not well-formed (invalid token)"),
        "digits": (b"<a 1='x'/>", "not well-formed (invalid token)"),
        "equals alone": (b"<a ='x'/>", "not well-formed (invalid token)"),
    },
    "names": {
        "digit": (b"<1/>", "not well-formed (invalid token)"),
        "hyphen": (b"<-a/>", "not well-formed (invalid token)"),
        "dot": (b"<.a/>", "not well-formed (invalid token)"),
        "sign": (b"<a+b/>", "not well-formed (invalid token)"),
        "no letter": ("<·/>".encode(), "not well-formed (invalid token)"),
    },
    "namespaces": {
        "unknown prefix": (b"<p:a/>", "unbound prefix"),
        "unknown prefix of an attribute": (b"<a p:k='1'/>", "unbound prefix"),
        "no prefix taken back": (b"<p:a xmlns:p=''/>", "must not undeclare prefix"),
        "xmlns declared": (
            b"<a xmlns:xmlns='urn:x'/>",
            "reserved prefix (xmlns) must not be declared or undeclared",
        ),
        "xml means something else": (
            b"<a xmlns:xml='urn:x'/>",
            "reserved prefix (xml) must not be undeclared or bound to another namespace name",
        ),
        "another prefix for xml": (
            b"<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
            "prefix must not be bound to one of the reserved namespace names",
        ),
        "xmlns as a namespace": (
            b"<a xmlns:p='http://www.w3.org/2000/xmlns/'/>",
            "prefix must not be bound to one of the reserved namespace names",
        ),
        "twice by prefix": (
            b"<a xmlns:p='urn:x' xmlns:q='urn:x' p:k='1' q:k='2'/>",
            "duplicate attribute",
        ),
        "declared twice": (b"<a xmlns:p='urn:x' xmlns:p='urn:y'/>", "duplicate attribute"),
        "two colons": (b"<p:q:a xmlns:p='urn:p'/>", "not well-formed (invalid token)"),
        "colon first": (b"<:a/>", "not well-formed (invalid token)"),
        "colon last": (b"<p: xmlns:p='urn:p'/>", "not well-formed (invalid token)"),
    },
    "document types": {
        "behind the root": (b"<a/><!DOCTYPE a>", "junk after document element"),
        "twice": (b"<!DOCTYPE a><!DOCTYPE a><a/>", "syntax error"),
        "no name": (b"<!DOCTYPE><a/>", "not well-formed (invalid token)"),
        "no end": (b"<!DOCTYPE a <a/>", "syntax error"),
        "public without system": (b"<!DOCTYPE a PUBLIC 'x'><a/>", "syntax error"),
        "content": (b"<!DOCTYPE a [<!ELEMENT a (b>]><a/>", "syntax error"),
        "attribute type": (b"<!DOCTYPE a [<!ATTLIST a k STRING #IMPLIED>]><a/>", "syntax error"),
        "unknown declaration": (b"<!DOCTYPE a [<!THING a>]><a/>", "syntax error"),
        "lower case": (b"<!doctype a><a/>", "syntax error"),
    },
}
