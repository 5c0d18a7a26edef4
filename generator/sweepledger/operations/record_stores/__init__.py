"""A module for each way in which records travel: it opens the store of the settings as a `RecordStore`."""
