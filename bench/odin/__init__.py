"""The experiments of the Odin paper's evaluation: lasthop compared with emulated push services."""
