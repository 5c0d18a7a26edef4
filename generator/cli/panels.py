"""The parts of `sweep --help`: whose day each command belongs to."""

AUTHOR = "Author: from a question to a batch"
RUN = "Run: after the merge"
READ = "Read: what came of it"
PLATFORM = "Platform: once a repository or cluster"
