"""Runs of the suite on many machines: a plan divides them into tasks for a cluster, whose records are collected."""
