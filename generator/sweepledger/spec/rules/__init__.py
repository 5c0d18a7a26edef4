"""The rules of specs and settings: what the JSON Schema cannot express, with one function per rule."""
