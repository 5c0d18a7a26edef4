"""What a platform follows: the repository, its server, and the names of folders and objects."""
