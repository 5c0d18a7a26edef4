"""One verb a module: composes the packages below it and returns a frozen outcome. Nothing here prints."""
