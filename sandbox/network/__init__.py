"""What answers in each VPC: the resolver and the way to the AWS API."""
