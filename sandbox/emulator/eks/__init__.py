"""The emulated EKS: clusters, node groups of real emulated instances, access entries, add-ons."""
