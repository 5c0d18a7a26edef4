"""What classes say of documents: the keys, and how a valid document is decoded."""
