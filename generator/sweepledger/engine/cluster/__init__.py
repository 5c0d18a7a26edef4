"""A cluster as seen through kubectl: reads and creates objects. Nothing here applies or prunes."""
