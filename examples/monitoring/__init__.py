"""Operatives who work alone, far from any network, and the centre that looks after them: vital
signs as a stream, advice, questions to the sensors, and a switch from a satellite link to a mobile
one."""
