"""The event log turned into tables, policies and answers, on Spark.

    log/ (JSON lines) ─▶ bronze ─▶ silver ─▶ gold ─▶ policies ─▶ the gateway
                          as written   de-duplicated,     measures
                                       one row per delivery

A transformation is a function from DataFrame to DataFrame that ends in a `select` against a schema;
jobs only read, chain and write. The pipeline shares files with the gateway, never a process.
"""
