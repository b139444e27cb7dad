"""What answers in each VPC: the resolver and the way to the AWS API; and what keeps neighbours out."""

# Public addresses of instances (RFC 5737): routed to the bridge of their VPC.
PUBLIC = "198.51.100.0/24"
