"""Terminal output and Markdown. Text from files is never interpreted as markup."""
