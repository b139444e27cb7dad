"""Stands in for what only AWS's own image has: cinc with its cookbook, and the helpers of CloudFormation.

The rest on these hosts is real: cloud-init, Slurm, munge, and the daemons of aws-parallelcluster-node.
"""
