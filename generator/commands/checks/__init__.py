"""What must hold of a repository before a merge: a module a subject, each yields problems."""
