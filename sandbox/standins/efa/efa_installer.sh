#!/usr/bin/env bash
# Stand-in for the EFA installer: the same options and the same marks on the system, with packages that hold stand-ins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
version=$(cat VERSION)
marker=/opt/amazon/efa_installed_packages
confirmed='' kmod=yes minimal='' limits=yes gdr='' verify=yes mpi=openmpi4,openmpi5 uninstall='' debug=no
for argument; do
  case $argument in
    -y | --yes) confirmed=yes ;;
    -k | --skip-kmod) kmod='' ;;
    -g | --enable-gdr) gdr=yes ;;
    -n | --no-verify) verify='' ;;
    -l | --skip-limit-conf) limits='' ;;
    -m | --minimal) minimal=yes ;;
    -u | --uninstall) uninstall=yes ;;
    --mpi=*) mpi=${argument#--mpi=} ;;
    --check-signatures) ;;
    *) echo "efa_installer.sh: unknown option $argument" >&2; exit 1 ;;
  esac
done
[ "$(id -u)" = 0 ] || { echo "efa_installer.sh must be run as root" >&2; exit 1; }
[ "$confirmed" ] || { echo "efa_installer.sh: confirm with --yes" >&2; exit 1; }
. /etc/os-release
folder=DEBS/${ID^^}${VERSION_ID//./}/x86_64
[ -d "$folder" ] || { echo "Error: EFA installer does not support $PRETTY_NAME" >&2; exit 1; }

packages=(efa-config efa-profile rdma-core-efa)
[ -z "$kmod" ] || packages+=(efa)
if [ -z "$minimal" ]; then
  packages+=(libfabric-aws-bin)
  case $mpi in *openmpi4*) packages+=(openmpi40-aws) ;; esac
  case $mpi in *openmpi5*) packages+=(openmpi50-aws) ;; esac
fi
if [ "$uninstall" ]; then
  apt-get remove -qq --yes efa-config efa-profile rdma-core-efa efa libfabric-aws-bin openmpi40-aws openmpi50-aws
  rm -f "$marker"
  exit 0
fi
files=()
for package in "${packages[@]}"; do files+=("./$folder/${package}_"*.deb); done
DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends --allow-downgrades "${files[@]}" < /dev/null
if [ "$limits" ]; then
  printf '%s\n' '* soft memlock unlimited' '* hard memlock unlimited' > /etc/security/limits.d/01_efa.conf
fi
mkdir -p /opt/amazon/efa/test
install -m 0755 efa_test.sh /opt/amazon/efa/test/efa_test.sh
{
  echo "# EFA installer version: $version"
  echo "# Debug packages installed: $debug"
  echo "# Packages installed:"
  for file in "${files[@]}"; do basename "$file" .deb; done | paste -sd ' '
} > "$marker"
if [ "$verify" ] && [ -z "$minimal" ] && [ -n "$kmod" ] && [ -z "$gdr" ]; then
  /opt/amazon/efa/test/efa_test.sh || { echo "Error: EFA was installed, and its test failed" >&2; exit 1; }
fi
echo "EFA installation complete."
