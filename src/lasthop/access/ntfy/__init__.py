"""The API of ntfy, translated onto topics: publishing, receiving, and what it says of itself."""
