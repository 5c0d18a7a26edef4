"""Attempts and records from the results volume and the cluster, and the commits that contain them."""
