"""The mirror of packages: apt repositories, the pip index and the keys that sign."""
