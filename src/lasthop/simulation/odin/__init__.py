"""The experiments of the Odin paper's evaluation, on virtual time."""
