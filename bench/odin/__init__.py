"""The experiments of the Odin paper's evaluation, ours beside emulated push services."""
