"""XML messages: how small and how fast, beside lxml and the compressors that everybody has."""
