"""A cluster from outside, through kubectl: looking, creating, reading. Nothing here applies or prunes."""
