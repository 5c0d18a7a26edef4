"""The rules of specs and settings that JSON Schema cannot express, with one function per rule."""
