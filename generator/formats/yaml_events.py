"""PyYAML's event stream, by the C parser: fast, and nothing is built or followed."""

from collections.abc import Iterator

import yaml

from generator.formats.plain_yaml import words_of


class EventsError(ValueError):
    """The text is no YAML from some place on."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        """From 1."""
        self.column = column
        """From 1."""


def events(text: str) -> Iterator[yaml.Event]:
    """Give the events of a text, one by one. Raises EventsError at the first place that makes no sense."""
    line, column = 1, 1
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if event.end_mark is not None:
                line, column = event.end_mark.line + 1, event.end_mark.column + 1
            yield event
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (line, column) if mark is None else (mark.line + 1, mark.column + 1)
        raise EventsError(words_of(error), *place) from error
    except (yaml.YAMLError, ValueError) as error:
        raise EventsError(str(error).splitlines()[0], line, column) from error
