"""What runs in control planes, on nodes and in Pods of the sandbox: the standard library, in Pods grpc as well."""
