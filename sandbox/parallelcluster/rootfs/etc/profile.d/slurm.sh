export PATH="/opt/slurm/bin:$PATH"
