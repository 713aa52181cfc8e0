"""XML messages: how small and how fast they are, compared with lxml and common compressors."""
