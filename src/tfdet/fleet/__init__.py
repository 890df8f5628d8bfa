"""Many machines: a plan in tasks, tasks sent to a cluster, what they leave taken in."""
