"""Gold: what people and policies want to know, each table a function of silver."""
