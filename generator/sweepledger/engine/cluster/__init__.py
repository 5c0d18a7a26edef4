"""Access to a cluster through kubectl: it reads and creates objects, but never applies or prunes them."""
