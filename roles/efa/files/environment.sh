# shellcheck shell=bash
# The environment of EFA for whoever talks over it: jobs, and the test across the nodes. Part of bash scripts.
# Whether a version is older than another.
older() {
  [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort --version-sort | head -n 1)" = "$1" ]
}
if command -v fi_info > /dev/null && fi_info -p efa > /dev/null 2>&1; then
  export FI_PROVIDER=efa FI_EFA_USE_DEVICE_RDMA=1
  # Kernels before 5.15 do not keep registered memory apart over a fork.
  if older "$(uname -r)" 5.15; then
    export FI_EFA_FORK_SAFE=1
    # What it was called before libfabric 1.13.
    libfabric=$(fi_info --version | sed -n 's/^libfabric: //p' || true)
    if [ -n "$libfabric" ] && older "$libfabric" 1.13; then
      export RDMAV_FORK_SAFE=1
    fi
  fi
fi
