"""People who work alone, far from any network, and those who look after them: vital signs as a
stream, advice, questions to the sensors, and a satellite link that gives way to a mobile one."""
