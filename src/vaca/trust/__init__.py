"""How far an answer can be trusted: a second opinion, hidden causes, bounds, other engines."""
