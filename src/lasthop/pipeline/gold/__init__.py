"""Gold: the measures that people and policies need, each table a function of silver."""
