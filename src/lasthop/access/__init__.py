"""The gateway's front doors: each turns a request in its protocol into a validated submission, or
refuses it with a clear error."""
