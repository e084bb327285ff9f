"""Measurements that anyone can run, side by side with the originals."""
