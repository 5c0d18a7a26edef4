"""What a sweep may come to, mostly by arithmetic: trials, work, the table's size."""
