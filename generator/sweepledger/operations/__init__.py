"""One module per verb: it composes the packages below and returns a frozen outcome. Nothing here prints."""
