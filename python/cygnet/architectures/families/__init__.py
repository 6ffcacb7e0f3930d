"""One data-only file a family: config keys to a ModelSpec, and the weight table."""
