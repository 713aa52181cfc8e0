"""Front doors: a request in some protocol becomes a validated submission, or a clear refusal."""
