"""Schemas that are hard for automata, each in its own way."""

SCHEMAS = {
    "figure 5.1": "start = element person { element name { xsd:string }, element age { xsd:int } }",
    "figure 5.2": """
        start = element all { element person { name, age }, element data { name | age } }
        name = element name { xsd:string }
        age = element age { xsd:int }
    """,
    "figure 5.3": """
        start = element pair { seq, seq }
        seq = element seq { element item { xsd:int }* }
    """,
    "an attribute, then an element": """
        start = element a { element b { attribute c { xsd:int }, element d { xsd:int } }* }
    """,
    "attributes of all kinds": """
        start = element a { attribute b { text }, attribute c { "fixed" }, attribute d { text }?,
                            attribute e { "x" }?, element f { attribute g { "y" }, empty }* }
    """,
    "optional content": """
        start = element a { element b { text }?, element c { xsd:int }?, element d { empty }? }
    """,
    "recursion": """
        start = tree
        tree = element node { attribute id { xsd:int }?, element label { text }?, tree* }
    """,
    "recursion that has to be": "start = a\na = element a { b | c }\nb = element b { a }\n"
    "c = element c { xsd:int }",
    "endless recursion": "start = a\na = element a { a }",
    "two that call each other": "start = a\na = element a { b? }\nb = element b { a* }",
    "interleave": """
        start = element a { element b { xsd:int }* & (element c { text }, element d { text }?)
                            & element e { empty } }
    """,
    "mixed": "start = p\np = element p { mixed { (element em { text } | p)* } }",
    "empty elements": "start = element a { element b { empty }*, element c { empty }+ }",
    "fixed texts": """
        start = element a { element version { "1.0" }, element v { xsd:int "5" | text }* }
    """,
    "a fixed document": """
        start = element a { b, b }
        b = element b { c, c }
        c = element c { d, d }
        d = element d { empty }
    """,
    "anything": "start = x\nx = element * { (attribute * { text } | text | x)* }",
    "names by the dozen": """
        namespace n = "urn:n"
        start = element (a | n:a) { element (b | c) { text }*, element n:* { text }? }
    """,
    "elements that look alike": """
        start = element a { (element b { xsd:int } | element b { element c { text } })* }
    """,
    "values without xsi:type": """
        start = element a { element i { xsd:int }, element s { xsd:string }*,
                            element d { xsd:date }? }
    """,
    "an xsi:type that the schema has": """
        namespace xsi = "http://www.w3.org/2001/XMLSchema-instance"
        start = element a { element i { attribute xsi:type { "xsd:int" }, xsd:int }*,
                            element s { attribute xsi:type { "xsd:string" }, xsd:string }? }
    """,
    "values that may be missing": "start = element a { element i { xsd:int? }* }",
    "nothing": "start = notAllowed",
}
