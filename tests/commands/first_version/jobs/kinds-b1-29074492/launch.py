# stands for the launcher, which has tests of its own
