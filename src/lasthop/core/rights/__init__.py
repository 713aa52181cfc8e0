"""Rights: who may do what, as rules over topics and targets."""
